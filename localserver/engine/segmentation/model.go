// Package segmentation computes the activity of local speakers in windows of a few
// seconds.
//
// A window has up to three local speakers, at most two at once: one of seven
// classes for each frame of 20 ms (powerset encoding: Plaquet and Bredin, arXiv
// 2310.13025). The input is the feature frames, through two convolutions, and the
// embedding network's trunk, through a projection, at 25 steps a second; dilated
// residual blocks have a receptive field of 31 steps on either side. All of this
// is computed once per step of the stream; steps near the newest sample are
// computed as if the stream ended there, and again when more has come. A
// bidirectional recurrent layer then runs over any window of it and gives the
// classes.
package segmentation

import (
	"fmt"

	"hubbub/localserver/engine/embedding"
	"hubbub/localserver/engine/nn"
	"hubbub/localserver/engine/weights"
)

const (
	// Classes is the number of sets of local speakers.
	Classes = 7
	// Speakers is the number of local speakers.
	Speakers = 3
	// Split is the number of 20 ms output frames in a step of 40 ms.
	Split = 2
	// Window is the number of steps in the 5 s that the network was trained on.
	Window = 125

	bands    = 64
	channels = 96
	hidden   = 96
	dense    = 64
	outputs  = Split * Classes
)

// Sets are the local speakers of each class.
var Sets = [Classes][]int{{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}}

var dilations = [5]int{1, 2, 4, 8, 16}

// Model is the network. It is immutable and shared by all streams.
type Model struct {
	c1, c2    *nn.Conv
	proj      *nn.Matrix
	dilated   [len(dilations)]*nn.Conv // of each residual block
	pointwise [len(dilations)]*nn.Conv // of each residual block, after it
	forwards  *nn.GRU
	backwards *nn.GRU
	l1, l2    *nn.Matrix
}

// New takes the tensors seg.* of a weights file.
func New(f *weights.File) *Model {
	m := &Model{}
	conv := func(name string, in, out, kernel, stride, dilation int) *nn.Conv {
		return nn.NewConv1D(in, out, kernel, stride, dilation, f.Tensor(name+".w", out, in, kernel), f.Tensor(name+".b", out))
	}
	m.c1 = conv("seg.c1", bands, channels, 5, 2, 1)
	m.c2 = conv("seg.c2", channels, channels, 5, 2, 1)
	w, b := f.Tensor("seg.proj.w", channels, embedding.TrunkSize), f.Tensor("seg.proj.b", channels)
	m.proj = nn.NewMatrix(1, embedding.TrunkSize, channels, b, func(_, k, n int) float32 { return w[n*embedding.TrunkSize+embedding.Exported(k)] })
	for i, d := range dilations {
		name := fmt.Sprintf("seg.blk%d", i)
		m.dilated[i] = conv(name+".a", channels, channels, 3, 1, d)
		m.pointwise[i] = nn.NewConv1D(channels, channels, 1, 1, 1, f.Tensor(name+".b.w", channels, channels), f.Tensor(name+".b.b", channels))
	}
	gru := func(name string) *nn.GRU {
		return nn.NewGRU(channels, hidden, f.Tensor(name+".wih", 3*hidden, channels), f.Tensor(name+".whh", 3*hidden, hidden),
			f.Tensor(name+".bih", 3*hidden), f.Tensor(name+".bhh", 3*hidden))
	}
	m.forwards, m.backwards = gru("seg.gru.fw"), gru("seg.gru.bw")
	m.l1 = nn.Dense(2*hidden, dense, f.Tensor("seg.l1.w", dense, 2*hidden), f.Tensor("seg.l1.b", dense))
	m.l2 = nn.Dense(dense, outputs, f.Tensor("seg.l2.w", outputs, dense), f.Tensor("seg.l2.b", outputs))
	return m
}
