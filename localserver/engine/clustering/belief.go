package clustering

// frameSeconds is the length of a frame.
const frameSeconds = 0.02

// mark is what all windows so far think of one frame.
type mark struct {
	weight float32 // of the windows that have seen it
	speech float32 // sum of weight * probability that anybody talks
	voice  [MaxVoices]float32
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

// add takes in a window whose pieces are who.
func (b *belief) add(w *Window, pieces []piece, who []int, p *Params) {
	n := len(w.Speech)
	for i := range n {
		m := b.at(w.First + i)
		if m == nil {
			continue
		}
		var now [MaxVoices]float32
		for k, v := range who {
			if q := &pieces[k]; v != nobody && i >= q.From && i < q.To {
				now[v] = max(now[v], w.Locals[q.local].Active[i])
			}
		}
		weight := float32(min(1, (float64(n-i)*frameSeconds)/p.Edge))
		m.weight += weight
		m.speech += weight * w.Speech[i]
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

// read appends who talks from frame first on. Where anybody talks, the
// likeliest voice does; a second one does when it has enough of a share.
func (b *belief) read(first int, p *Params, out []uint8) []uint8 {
	for f := first; f < b.first+len(b.marks); f++ {
		m := b.at(f)
		var bits uint8
		if m != nil && m.weight > 0 && float64(m.speech/m.weight) > p.SpeechOn {
			top := 0
			for v := range m.voice {
				if m.voice[v] > m.voice[top] {
					top = v
				}
			}
			if m.voice[top] > 0.15*m.speech {
				bits |= 1 << top
			}
			for v := range m.voice {
				if float64(m.voice[v]) > p.SecondOn*float64(m.speech) {
					bits |= 1 << v
				}
			}
		}
		out = append(out, bits)
	}
	return out
}
