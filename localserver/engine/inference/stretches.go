package inference

import (
	"math"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
	"hubbub/localserver/engine/segmentation"
)

// minAlone is the probability of exactly one speaker below which a step is in no
// stretch.
const minAlone = 0.3

// stretchRadius is how many steps on either side of its middle each of the
// embeddings of a stretch covers: 0.44 s and 2.04 s.
var stretchRadius = [decoder.Scales]int{5, 25}

// stretchAges are how many steps a stretch must be older than the newest one of the
// window to be computed: in a whole recording when all of its steps are there, live
// once soon and once about when it is committed at a latency of 1 s.
var (
	settledAges = []int{stretchRadius[len(stretchRadius)-1]}
	liveAges    = []int{22, 8}
)

// stretches sets the stretches of the window from, from+1, ... to-1. last says that no
// window follows.
func (s *Stream) stretches(from, to int, last bool) {
	s.window.Stretches = s.window.Stretches[:0]
	for j := range to - from {
		alone := float32(0)
		for i := range framesPerStep {
			logp := s.logp[(j*framesPerStep+i)*segmentation.Classes:]
			for c := 1; c <= segmentation.Speakers; c++ {
				alone += float32(math.Exp(float64(logp[c]))) / framesPerStep
			}
		}
		if s.alone[j] = alone; alone < minAlone {
			s.alone[j] = 0
		}
	}
	for i, age := range s.stretchAges {
		if last {
			age = 0
		}
		for ; s.nextStretch[i]+age < to; s.nextStretch[i] += clustering.StretchHop {
			s.window.Stretches = append(s.window.Stretches, s.stretch(s.nextStretch[i], from, to-from))
		}
	}
}

// stretch embeds the single-speaker speech around a step, of a window of n steps.
func (s *Stream) stretch(step, from, n int) clustering.Stretch {
	t := clustering.Stretch{Step: step}
	for i, r := range stretchRadius {
		clear(s.mask[:])
		a := max(0, step-r-from)
		b := max(a, min(n, step+r+1-from)) // nothing of a stretch before the window
		copy(s.mask[a:b], s.alone[a:b])
		s.embedding.Embed(from, s.mask[:n], t.Embeddings[i][:])
	}
	return t
}
