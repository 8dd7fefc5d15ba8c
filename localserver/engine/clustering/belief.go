package clustering

// frameSeconds is the length of a frame.
const frameSeconds = 0.02

// mark is what all windows so far think of one frame.
type mark struct {
	weight float32 // of the windows that have seen it
	speech float32 // sum of weight * probability that anybody talks
	voice  [MaxVoices]float32
	// newest is the latest window's view alone, for continuity.
	newest [MaxVoices]float32
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

// share is how much of a local, which is active as given from frame first on,
// the windows before have taken for voice v: 0 to 1.
func (b *belief) share(first int, active []float32, v int) float64 {
	var was, all float32
	for i, a := range active {
		if m := b.at(first + i); m != nil && m.weight > 0 && a > 0.5 {
			all++
			was += min(m.newest[v], 1)
		}
	}
	if all < 10 {
		return 0
	}
	return float64(was / all)
}

// add takes in a window whose locals are who; moves overrule it for pieces.
func (b *belief) add(w *Window, who []int, moves []move, p *Params) {
	n := len(w.Speech)
	for i := range n {
		m := b.at(w.First + i)
		if m == nil {
			continue
		}
		var now [MaxVoices]float32
		for k, v := range who {
			to := v
			for _, mv := range moves {
				if mv.local == k && i >= mv.from && i < mv.to {
					to = mv.voice
				}
			}
			if to != nobody {
				now[to] = max(now[to], w.Locals[k].Active[i])
			}
		}
		weight := float32(min(1, (float64(n-i)*frameSeconds)/p.Edge))
		m.weight += weight
		m.speech += weight * w.Speech[i]
		for v := range now {
			m.voice[v] += weight * now[v]
		}
		m.newest = now
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
