package clustering

// aggregate sums the scores of all windows for each frame that is not discarded.
type aggregate struct {
	first  int // number of frames[0]
	frames []frameScores
}

// frameScores are the sums of one frame over the windows that cover it.
type frameScores struct {
	weight  float32 // of the windows
	speech  float32 // weight * probability of speech
	talkers float32 // weight * expected number of talkers
	speaker [MaxSpeakers]float32
}

// extend makes room for the frames before end.
func (a *aggregate) extend(end int) {
	for a.first+len(a.frames) < end {
		a.frames = append(a.frames, frameScores{})
	}
}

// discard deletes the frames before first.
func (a *aggregate) discard(first int) {
	if n := min(first-a.first, len(a.frames)); n > 0 {
		a.frames = a.frames[:copy(a.frames, a.frames[n:])]
		a.first += n
	}
}

// frame is the scores of a frame, nil for one that is discarded or to come.
func (a *aggregate) frame(number int) *frameScores {
	if i := number - a.first; i >= 0 && i < len(a.frames) {
		return &a.frames[i]
	}
	return nil
}

// add adds a window whose segments belong to the speakers by these shares.
func (a *aggregate) add(w *Window, segments []segment, shares [][MaxSpeakers]float32, p *Params) {
	n := len(w.Speech)
	for i := range n {
		f := a.frame(w.First + i)
		if f == nil {
			continue
		}
		weight := float32(min(1, (float64(n-i)*frameSeconds)/p.EdgeRamp))
		f.weight += weight
		f.speech += weight * w.Speech[i]
		for k := range w.Speakers {
			f.talkers += weight * w.Speakers[k].Activity[i]
		}
		var scores [MaxSpeakers]float32
		for j := range shares {
			s := &segments[j]
			if i < s.From || i >= s.To {
				continue
			}
			for k, share := range shares[j] {
				scores[k] = max(scores[k], share*w.Speakers[s.local].Activity[i])
			}
		}
		for k := range scores {
			f.speaker[k] += weight * scores[k]
		}
	}
}

// move adds the scores of one speaker to those of another and clears them.
func (a *aggregate) move(from, to int) {
	for i := range a.frames {
		f := &a.frames[i]
		f.speaker[to] += f.speaker[from]
		f.speaker[from] = 0
	}
}

// activity appends the active speakers of each frame from first on, bit k for
// speaker k.
func (a *aggregate) activity(first int, p *Params, out []uint8) []uint8 {
	for n := first; n < a.first+len(a.frames); n++ {
		var active uint8
		if f := a.frame(n); f != nil && f.weight > 0 {
			active = f.active(p)
		}
		out = append(out, active)
	}
	return out
}

// active decides one frame. The segmentation decides whether there is speech and
// whether it is overlap; the speakers are the most likely ones. A frame gets no
// label where the most likely speaker has too small a share of the speech: below
// SpeakerShareThreshold it is more often the wrong one.
func (f *frameScores) active(p *Params) (speakers uint8) {
	speech := float64(f.speech)
	if float64(f.speech/f.weight) <= p.SpeechThreshold {
		return 0
	}
	first, second := f.mostLikely()
	if float64(f.speaker[first]) <= p.SpeakerShareThreshold*speech {
		return 0
	}
	speakers = 1 << first
	if float64(f.talkers/f.speech) > 1+p.OverlapThreshold && f.speaker[second] > 0 {
		speakers |= 1 << second
	}
	return speakers
}

// mostLikely are the two speakers with the highest scores.
func (f *frameScores) mostLikely() (first, second int) {
	first, second = 0, 1
	for k := range f.speaker {
		if f.speaker[k] > f.speaker[first] {
			first, second = k, first
		} else if k != first && f.speaker[k] > f.speaker[second] {
			second = k
		}
	}
	return first, second
}
