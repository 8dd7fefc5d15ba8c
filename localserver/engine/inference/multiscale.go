package inference

import (
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
)

// minAlone is the probability of exactly one speaker below which a step is in no
// multiscale embedding.
const minAlone = 0.3

// multiscaleRadius is how many steps on either side of the middle each scale covers:
// 0.44 s and 2.04 s.
var multiscaleRadius = [decoder.Scales]int{5, 25}

// The ages are how many steps a multiscale embedding must be older than the newest step
// of the window to be computed: in a whole recording when all of its steps are there, live
// once soon and once about when it is committed at a latency of 1 s.
var (
	offlineAges = []int{multiscaleRadius[len(multiscaleRadius)-1]}
	liveAges    = []int{22, 8}
)

// embedMultiscale computes the multiscale embeddings that the window of the steps
// from, from+1, ... to-1 completes. last says that no window follows.
func (s *Stream) embedMultiscale(from, to int, last bool) {
	s.window.Multiscale = s.window.Multiscale[:0]
	for j, alone := range s.alone {
		if alone < minAlone {
			s.alone[j] = 0
		}
	}
	for i, age := range s.multiscaleAges {
		if last {
			age = 0
		}
		for ; s.nextMultiscale[i]+age < to; s.nextMultiscale[i] += clustering.MultiscaleHop {
			s.window.Multiscale = append(s.window.Multiscale, clustering.MultiscaleEmbedding{Step: s.nextMultiscale[i]})
		}
	}
	for i := range s.window.Multiscale {
		s.embedAround(&s.window.Multiscale[i], from, to-from)
	}
}

// embedAround embeds the single-speaker speech around a step, of a window of n steps.
func (s *Stream) embedAround(e *clustering.MultiscaleEmbedding, from, n int) {
	for i, r := range multiscaleRadius {
		clear(s.mask[:])
		a := max(0, e.Step-r-from)
		b := max(a, min(n, e.Step+r+1-from)) // nothing before the window
		copy(s.mask[a:b], s.alone[a:b])
		s.embedding.Embed(from, s.mask[:n], e.Embeddings[i][:])
	}
}
