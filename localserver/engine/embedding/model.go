// Package embedding computes speaker embeddings.
//
// A 2-D residual network over frequency and time (the trunk) sees every feature
// frame of the stream once. Its output is 768 values for each step of 40 ms. A
// head pools any set of steps under a mask (attentive statistics pooling: Okabe
// et al., arXiv 1803.10963) into an embedding of 128 values and length 1.
// Embeddings are compared by their cosine.
//
// The receptive field of the trunk is 350 ms on either side. Steps nearer than
// that to the newest sample are computed as if the stream ended there, and again
// when more has come: at any time the result is that of the whole network on the
// audio so far.
package embedding

import (
	"fmt"

	"hubbub/localserver/engine/nn"
	"hubbub/localserver/engine/weights"
)

const (
	// Size is the length of an embedding.
	Size = 128
	// TrunkSize is the number of values of the trunk for one step: 8 bands of 96 channels.
	TrunkSize = bandsOut * channelsOut

	bands         = 64
	bandsOut      = 8
	channelsOut   = 96
	attentionSize = 64
)

// Exported is the column of the exported weights for value i of a step of the
// trunk. Exported columns are channel * 8 + band; here the channels of a band
// are adjacent.
func Exported(i int) int { return i%channelsOut*bandsOut + i/channelsOut }

// plan is the trunk's residual blocks: output channels, stride in frequency and time.
var plan = [5]struct{ c, freq, time int }{{16, 1, 1}, {32, 2, 2}, {32, 1, 1}, {channelsOut, 2, 1}, {channelsOut, 1, 1}}

// block is a residual block: two convolutions, and a 1x1 convolution as the
// shortcut where the shape changes.
type block struct {
	c1, c2, shortcut *nn.Conv
}

// Model is the network. It is immutable and shared by all streams.
type Model struct {
	stem   *nn.Conv
	planes [len(plan) + 1]nn.Plane // output of the stem and of each block
	blocks [len(plan)]block
	att1   *nn.Matrix
	att2   *nn.Matrix
	fc     *nn.Matrix
}

// New takes the tensors emb.* of a weights file.
func New(f *weights.File) *Model {
	m := &Model{}
	conv := func(name string, in, out nn.Plane, size, fs, ts int) *nn.Conv {
		return nn.NewConv2D(in, out, size, fs, ts, f.Tensor(name+".w", out.C, in.C, size, size), f.Tensor(name+".b", out.C))
	}
	in := nn.Plane{Bands: bands, C: 1, Padded: true}
	m.planes[0] = nn.Plane{Bands: bands / 2, C: 16, Padded: true}
	m.stem = conv("emb.stem", in, m.planes[0], 3, 2, 2)
	for i, p := range plan {
		in := m.planes[i]
		out := nn.Plane{Bands: in.Bands / p.freq, C: p.c, Padded: i+1 < len(plan)}
		mid := out
		mid.Padded = true
		name := fmt.Sprintf("emb.blk%d", i)
		b := block{c1: conv(name+".c1", in, mid, 3, p.freq, p.time), c2: conv(name+".c2", mid, out, 3, 1, 1)}
		if in.C != out.C || in.Bands != out.Bands {
			b.shortcut = conv(name+".sc", in, out, 1, p.freq, p.time)
		}
		m.planes[i+1], m.blocks[i] = out, b
	}
	w1, b1 := f.Tensor("emb.att1.w", attentionSize, TrunkSize), f.Tensor("emb.att1.b", attentionSize)
	m.att1 = nn.NewMatrix(1, TrunkSize, attentionSize, b1, func(_, k, n int) float32 { return w1[n*TrunkSize+Exported(k)] })
	w2, b2 := f.Tensor("emb.att2.w", TrunkSize, attentionSize), f.Tensor("emb.att2.b", TrunkSize)
	m.att2 = nn.NewMatrix(1, attentionSize, TrunkSize, permuted(b2), func(_, k, n int) float32 { return w2[Exported(n)*attentionSize+k] })
	wf, bf := f.Tensor("emb.fc.w", Size, 2*TrunkSize), f.Tensor("emb.fc.b", Size)
	m.fc = nn.NewMatrix(1, 2*TrunkSize, Size, bf, func(_, k, n int) float32 {
		return wf[n*2*TrunkSize+k/TrunkSize*TrunkSize+Exported(k%TrunkSize)]
	})
	return m
}

func permuted(v []float32) []float32 {
	out := make([]float32, len(v))
	for i := range out {
		out[i] = v[Exported(i)]
	}
	return out
}
