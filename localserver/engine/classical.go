package engine

// classical is the first listener: hand-made features, no training.
type classical struct {
	frames []voices
	first  int
	heard  int
}

func newClassical(int) *classical { return &classical{} }

func (c *classical) hear(samples []float32) {
	c.heard += len(samples)
	for c.first+len(c.frames) < c.heard/frameSamples {
		c.frames = append(c.frames, 0)
	}
}

func (c *classical) opinion(frame int) []voices {
	c.frames = c.frames[:copy(c.frames, c.frames[frame-c.first:])]
	c.first = frame
	return c.frames
}
