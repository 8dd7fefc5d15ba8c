package clustering

import "hubbub/localserver/engine/decoder"

// DecoderInput is what is known of the newest frames. Decoded, its Scores are the
// probability of each speaker to talk.
type DecoderInput struct {
	decoder.Input
	// First is the number of the first frame.
	First int
	// Numbers are those of the speakers, merged ones left out. Before there is a
	// speaker, all speech is that of speaker 0.
	Numbers []int

	params *Params
}

// DecoderInput sets out to the frames from first, rounded down to a whole step of
// 40 ms, to the newest frame of any window. They may change with the next window.
func (c *Clusterer) DecoderInput(first int, out *DecoderInput) {
	first = max(first, c.aggregate.first) / decoder.Split * decoder.Split
	out.First, out.Numbers, out.params = first, out.Numbers[:0], &c.p
	for k := range c.speakers {
		if !c.speakers[k].merged() {
			out.Numbers = append(out.Numbers, k)
		}
	}
	if len(c.speakers) == 0 {
		out.Numbers = append(out.Numbers, 0)
	}
	steps := max(0, c.aggregate.first+len(c.aggregate.frames)-first+decoder.Split-1) / decoder.Split
	out.Reset(len(out.Numbers), steps)
	for i := range out.Frames {
		f := c.aggregate.frame(first + i)
		if f == nil || f.weight == 0 {
			continue
		}
		out.Frames[i] = decoder.Frame{Speech: f.speech / f.weight, SpeakerCount: f.speakerCount / f.weight}
		for j, k := range out.Numbers {
			out.Scores[i*len(out.Numbers)+j] = f.speaker[k] / f.weight
		}
	}
	if len(c.speakers) > 0 {
		c.setCosines(first/decoder.Split, out)
	}
}

// Active decides frame i: the set of speakers, bit k for speaker k. Speech and the
// number of simultaneous speakers decide whether there is speech and whether it is
// overlap; the speakers are the most likely ones. Speech of a new person gets no label
// rather than that of somebody else: below SpeakerShareThreshold the likeliest one is
// mostly wrong.
func (s *DecoderInput) Active(i int) (set uint8) {
	of := s.Scores[i*s.Speakers:][:s.Speakers]
	speech := float64(s.Frames[i].Speech)
	first, second := decoder.Likely(of)
	if first < 0 || speech <= s.params.SpeechThreshold || float64(of[first]) <= s.params.SpeakerShareThreshold*speech {
		return 0
	}
	set = 1 << s.Numbers[first]
	if second >= 0 && float64(s.Frames[i].SpeakerCount) > (1+s.params.OverlapThreshold)*speech && of[second] > 0 {
		set |= 1 << s.Numbers[second]
	}
	return set
}

// Activity appends to out the active speakers of each frame from frame first to the
// newest frame of any window, as the scores have them. It may change with the next
// window.
func (c *Clusterer) Activity(first int, out []uint8) []uint8 {
	var s DecoderInput
	c.DecoderInput(first, &s)
	for i := first - s.First; i < len(s.Frames); i++ {
		out = append(out, s.Active(i))
	}
	return out
}

// setCosines sets the cosines of the steps from first on: those of the multiscale
// embedding that a step belongs to.
func (c *Clusterer) setCosines(first int, out *DecoderInput) {
	size := len(out.Numbers) * decoder.Scales // cosines of a step
	for i := range c.multiscale {
		s := &c.multiscale[i]
		for t := max(s.Step-first, 0); t < min(s.Step-first+MultiscaleHop, len(out.Frames)/decoder.Split); t++ {
			to := out.Cosines[t*size:][:size]
			if t > max(s.Step-first, 0) {
				copy(to, out.Cosines[(t-1)*size:])
				continue
			}
			for j, k := range out.Numbers {
				for scale := range s.Embeddings {
					to[j*decoder.Scales+scale] = float32(s.Embeddings[scale].Dot(&c.speakers[k].centroid.Embedding))
				}
			}
		}
	}
}

// addMultiscale takes the multiscale embeddings of a window, which replace those of the
// same step.
func (c *Clusterer) addMultiscale(w *Window) {
	for _, s := range w.Multiscale {
		i := len(c.multiscale)
		if i > 0 {
			i = (s.Step - c.multiscale[0].Step) / MultiscaleHop
		}
		switch {
		case i == len(c.multiscale):
			c.multiscale = append(c.multiscale, s)
		case i >= 0 && i < len(c.multiscale):
			c.multiscale[i] = s
		}
	}
}

// discardMultiscale releases those that end before a frame.
func (c *Clusterer) discardMultiscale(first int) {
	n := 0
	for n < len(c.multiscale) && (c.multiscale[n].Step+MultiscaleHop)*decoder.Split <= first {
		n++
	}
	c.multiscale = c.multiscale[:copy(c.multiscale, c.multiscale[n:])]
}
