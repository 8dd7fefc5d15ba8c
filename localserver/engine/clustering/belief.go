package clustering

// frameSeconds is the length of a frame.
const frameSeconds = 0.02

// mark is what all windows so far think of one frame.
type mark struct {
	weight  float32 // of the windows that have seen it
	speech  float32 // sum of weight * probability that anybody talks
	talkers float32 // sum of weight * how many talk
	voice   [MaxVoices]float32
}

// belief gathers the windows' opinions on the frames that are not forgotten.
type belief struct {
	first int // number of marks[0]
	marks []mark
}

// extend makes room for the frames before end.
func (b *belief) extend(end int) {
	for b.first+len(b.marks) < end {
		b.marks = append(b.marks, mark{})
	}
}

// forget drops the frames before first.
func (b *belief) forget(first int) {
	if n := min(first-b.first, len(b.marks)); n > 0 {
		b.marks = b.marks[:copy(b.marks, b.marks[n:])]
		b.first += n
	}
}

// at is the mark of a frame, nil for one that is forgotten or has not come.
func (b *belief) at(frame int) *mark {
	if i := frame - b.first; i >= 0 && i < len(b.marks) {
		return &b.marks[i]
	}
	return nil
}

// add takes in a window of whose pieces voices have such shares.
func (b *belief) add(w *Window, pieces []piece, shares [][MaxVoices]float32, p *Params) {
	n := len(w.Speech)
	for i := range n {
		m := b.at(w.First + i)
		if m == nil {
			continue
		}
		weight := float32(min(1, (float64(n-i)*frameSeconds)/p.Edge))
		m.weight += weight
		m.speech += weight * w.Speech[i]
		for k := range w.Locals {
			m.talkers += weight * w.Locals[k].Active[i]
		}
		var now [MaxVoices]float32
		for k := range shares {
			q := &pieces[k]
			if i < q.From || i >= q.To {
				continue
			}
			for v, share := range shares[k] {
				now[v] = max(now[v], share*w.Locals[q.local].Active[i])
			}
		}
		for v := range now {
			m.voice[v] += weight * now[v]
		}
	}
}

// move gives all that was thought to be voice from to voice to.
func (b *belief) move(from, to int) {
	for i := range b.marks {
		m := &b.marks[i]
		m.voice[to] += m.voice[from]
		m.voice[from] = 0
	}
}

// read appends who talks from frame first on.
func (b *belief) read(first int, p *Params, out []uint8) []uint8 {
	for f := first; f < b.first+len(b.marks); f++ {
		var bits uint8
		if m := b.at(f); m != nil && m.weight > 0 {
			bits = m.talking(p)
		}
		out = append(out, bits)
	}
	return out
}

// talking is who talks, a bit for each voice. That anybody talks, and that two do at
// once, the segmentation says; who they are, the likeliest voices. Where even the
// likeliest has too small a share, or the windows do not agree on it, it is left open:
// no label is better than another one's.
func (m *mark) talking(p *Params) (bits uint8) {
	speech := float64(m.speech)
	if float64(m.speech/m.weight) <= p.SpeechOn {
		return 0
	}
	top, second := m.likeliest()
	talkers := float64(m.talkers / m.speech)
	if float64(m.voice[top]) <= p.VoiceLeast*speech || float64(m.voice[top])*max(1, talkers) <= p.Agree*m.decided() {
		return 0
	}
	bits = 1 << top
	if talkers > 1+p.SecondOn && float64(m.voice[second]) > p.SecondLeast*speech {
		bits |= 1 << second
	}
	return bits
}

// decided is what all voices have together: less than the speech where windows left
// open who talks.
func (m *mark) decided() (all float64) {
	for _, x := range m.voice {
		all += float64(x)
	}
	return all
}

// likeliest are the two voices with the largest shares.
func (m *mark) likeliest() (top, second int) {
	top, second = 0, 1
	for v := range m.voice {
		if m.voice[v] > m.voice[top] {
			top, second = v, top
		} else if v != top && m.voice[v] > m.voice[second] {
			second = v
		}
	}
	return top, second
}
