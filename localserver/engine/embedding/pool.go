package embedding

import (
	"math"

	"hubbub/localserver/engine/nn"
)

// Pool is the sums from which an embedding is made. They add up: the pool of
// two stretches of speech is the sum of theirs, over frames that left the
// stream's window long ago as well.
type Pool struct {
	// Frames is the sum of the mask: how many frames of 40 ms went in.
	Frames     float32
	w, wx, wxx [TrunkSize]float32
}

// Reset empties the pool.
func (p *Pool) Reset() { *p = Pool{} }

// Bytes is the memory of a pool.
func (p *Pool) Bytes() int { return 4 * (1 + 3*TrunkSize) }

// Merge adds another pool, scaled by weight.
func (p *Pool) Merge(o *Pool, weight float32) {
	p.Frames += weight * o.Frames
	for i := range p.w {
		p.w[i] += weight * o.w[i]
		p.wx[i] += weight * o.wx[i]
		p.wxx[i] += weight * o.wxx[i]
	}
}

// Pool adds frames from, from+1, ... to p, each with its weight in mask (0 to
// 1: how much of the 40 ms is this speaker alone). Frames that are not held any
// more, or not yet, are left out; those that will change go in as they are now.
func (s *Stream) Pool(p *Pool, from int, mask []float32) {
	trunk := s.Trunk()
	for i, m := range mask {
		t := from + i
		if !(m > 0) || t < s.First() || t >= trunk.Len() {
			continue
		}
		p.Frames += m
		nn.Accumulate(p.w[:], p.wx[:], p.wxx[:], s.weights.Frame(t), trunk.Frame(t), m)
	}
}

// Embed writes the embedding of a pool to dst (Size values, length 1). It
// reports false, and writes nothing, when the pool is empty.
func (s *Stream) Embed(p *Pool, dst []float32) bool {
	if !(p.Frames > 0) {
		return false
	}
	for i, w := range p.w {
		mean := p.wx[i] / w
		s.pooled[i] = mean
		s.pooled[TrunkSize+i] = float32(math.Sqrt(float64(max(p.wxx[i]/w-mean*mean, 1e-5))))
	}
	dst = dst[:Size]
	s.m.fc.Apply(nn.Rows{Groups: 1, N: 1, Src: s.pooled, Dst: dst})
	sum := 0.0
	for _, v := range dst {
		sum += float64(v) * float64(v)
	}
	scale := float32(1 / max(math.Sqrt(sum), 1e-12))
	for i := range dst {
		dst[i] *= scale
	}
	return true
}

// EmbedMask is Pool and Embed for one mask over frames from, from+1, ...
func (s *Stream) EmbedMask(from int, mask, dst []float32) bool {
	s.pool.Reset()
	s.Pool(&s.pool, from, mask)
	return s.Embed(&s.pool, dst)
}
