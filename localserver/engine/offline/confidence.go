package offline

// FrameSeconds is the length of a frame of Result.Confidence.
const FrameSeconds = frameSeconds

// Confidence is how certain the decision about each frame is, 0 to 1: that nobody
// talks, or that the speakers talk to whom it was given.
func (r *Result) Confidence() []float64 {
	out := make([]float64, r.frames)
	for i := range out {
		f, of := r.scores.at(i)
		set, _ := r.scores.active(i, &r.params)
		if set == 0 {
			out[i] = 1 - float64(f.Speech)
			continue
		}
		var chosen, all float64
		for k, p := range of {
			all += float64(p)
			if set&(1<<k) != 0 {
				chosen += float64(p)
			}
		}
		out[i] = float64(f.Speech) * chosen / all
	}
	return out
}

// Speaking is the probability of each speaker to talk in the stretch from start
// to end (seconds), 0 to 1: the mean over its frames.
func (r *Result) Speaking(start, end float64) []float64 {
	out := make([]float64, len(r.order))
	from, to := max(int(start/frameSeconds+0.5), 0), min(int(end/frameSeconds+0.5), r.frames)
	for i := from; i < to; i++ {
		_, of := r.scores.at(i)
		for j, k := range r.order {
			out[j] += float64(of[k]) / float64(to-from)
		}
	}
	return out
}
