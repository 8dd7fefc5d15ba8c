package clustering

// aggregate sums the scores of all windows for each frame that is not discarded.
type aggregate struct {
	first  int // number of frames[0]
	frames []frameScores
}

// frameScores are the sums of one frame over the windows that cover it.
type frameScores struct {
	weight       float32 // of the windows
	speech       float32 // weight * probability of speech
	speakerCount float32 // weight * expected number of simultaneous speakers
	speaker      [MaxSpeakers]float32
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

// add adds a window whose segments are assigned to these speakers.
func (a *aggregate) add(w *Window, segments []segment, assigned []int, p *Params) {
	n := len(w.SpeechProbability)
	for i := range n {
		f := a.frame(w.First + i)
		if f == nil {
			continue
		}
		weight := float32(min(1, (float64(n-i)*FrameSeconds)/p.EdgeRamp))
		f.weight += weight
		f.speech += weight * w.SpeechProbability[i]
		for k := range w.Speakers {
			f.speakerCount += weight * w.Speakers[k].Activity[i]
		}
		var scores [MaxSpeakers]float32
		for j, k := range assigned {
			if s := &segments[j]; k != noSpeaker && i >= s.From && i < s.To {
				scores[k] = max(scores[k], w.Speakers[s.local].Activity[i])
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
