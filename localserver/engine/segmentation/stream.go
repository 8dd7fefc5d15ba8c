package segmentation

import (
	"math"

	"hubbub/localserver/engine/embedding"
	"hubbub/localserver/engine/nn"
)

// trunkLag bounds how many steps of 40 ms the trunk's final steps are behind those
// of the convolutions beside it (8 by its receptive field of 350 ms, and
// rounding).
const trunkLag = 16

// Stream is the network over one stream. One goroutine may use it; after its
// first seconds it allocates nothing.
//
// It belongs to an embedding.Stream: both get the same frames and are updated
// together, the trunk first.
type Stream struct {
	m       *Model
	in      *nn.Track
	a       *nn.Track                     // after c1
	c       *nn.Track                     // after c2
	x       [len(dilations) + 1]*nn.Track // the residual stream: before block 0, after each
	mids    [len(dilations)]*nn.Track     // inside each block
	gates   *nn.Track                     // input products of the GRU, forwards then backwards
	gru     []float32                     // states of one window, forwards then backwards
	dense   []float32
	out     []float32
	scratch [4 * hidden]float32
}

// NewStream begins a stream that keeps the newest window steps of 40 ms. With a
// window of 5 s and an Update every 0.5 s it takes 0.8 MB.
func (m *Model) NewStream(window int) *Stream {
	s := &Stream{m: m, in: nn.NewTrack(bands, 2, 4), a: nn.NewTrack(channels, 2, 4), c: nn.NewTrack(channels, 0, trunkLag),
		gates: nn.NewTrack(6*hidden, 0, window)}
	for i := range s.x {
		edge, keep := 0, 0
		if i < len(dilations) {
			edge, keep = dilations[i], 2*dilations[i]
			s.mids[i] = nn.NewTrack(channels, 0, 0)
		}
		s.x[i] = nn.NewTrack(channels, edge, keep)
	}
	return s
}

// Append takes feature frames, 64 values each. They count from the next Update on.
func (s *Stream) Append(frames []float32) { s.in.Push(frames, bands, 0) }

// Update computes the stream up to the newest appended frame; trunk is the
// embedding network's output for the same frames.
func (s *Stream) Update(trunk *nn.Track) {
	if !s.in.Read() {
		return
	}
	m := s.m
	m.c1.Step(s.in, s.a, nil, true)
	x := s.x[0]
	m.c2.Step(s.a, s.c, nil, false)
	x.Extend(s.c.Len())
	if from, n := x.Final(), x.Len()-x.Final(); n > 0 {
		m.proj.Apply(nn.Rows{Groups: 1, N: n, Src: trunk.From(from), SrcStride: embedding.TrunkSize,
			Dst: x.From(from), DstStride: channels, Add: s.c.From(from), AddStride: channels, ReLU: true})
	}
	x.SetFinal(min(s.c.Final(), trunk.Final()))
	for i := range dilations {
		m.dilated[i].Step(s.x[i], s.mids[i], nil, true)
		m.pointwise[i].Step(s.mids[i], s.x[i+1], s.x[i], false)
	}
	x = s.x[len(dilations)]
	from := s.gates.Final()
	s.gates.Extend(x.Len())
	if n := x.Len() - from; n > 0 {
		r := nn.Rows{Groups: 1, N: n, Src: x.From(from), SrcStride: channels, Dst: s.gates.From(from), DstStride: 6 * hidden}
		m.forwards.Input.Apply(r)
		r.Dst = r.Dst[3*hidden:]
		m.backwards.Input.Apply(r)
	}
	s.gates.SetFinal(x.Final())
}

// Len is the number of steps so far.
func (s *Stream) Len() int { return s.gates.Len() }

// First is the oldest step that Window can still use.
func (s *Stream) First() int { return s.gates.First() }

// Window runs the recurrent layer over the steps [from, to) in both directions,
// from state zero, and appends the natural logarithms of the classes'
// probabilities to dst: Classes values for each of 2*(to-from) frames of 20 ms.
// Steps that are not held are left out.
func (s *Stream) Window(from, to int, dst []float32) []float32 {
	from, to = max(from, s.First()), min(to, s.Len())
	n := to - from
	if n <= 0 {
		return dst
	}
	s.grow(n)
	in := s.gates.From(from)
	s.m.forwards.Run(in, 6*hidden, s.gru, 2*hidden, n, false, s.scratch[:])
	s.m.backwards.Run(in[3*hidden:], 6*hidden, s.gru[hidden:], 2*hidden, n, true, s.scratch[:])
	width := s.m.l2.Padded()
	s.m.l1.Apply(nn.Rows{Groups: 1, N: n, Src: s.gru, SrcStride: 2 * hidden, Dst: s.dense, DstStride: dense, ReLU: true})
	s.m.l2.Apply(nn.Rows{Groups: 1, N: n, Src: s.dense, SrcStride: dense, Dst: s.out, DstStride: width})
	for i := range n {
		for h := range Split {
			dst = appendLogSoftmax(dst, s.out[i*width+h*Classes:][:Classes])
		}
	}
	return dst
}

func (s *Stream) grow(n int) {
	if len(s.gru) >= n*2*hidden {
		return
	}
	s.gru, s.dense, s.out = make([]float32, n*2*hidden), make([]float32, n*dense), make([]float32, n*s.m.l2.Padded())
}

func appendLogSoftmax(dst, v []float32) []float32 {
	top := v[0]
	for _, x := range v[1:] {
		top = max(top, x)
	}
	sum := 0.0
	for _, x := range v {
		sum += math.Exp(float64(x - top))
	}
	sub := top + float32(math.Log(sum))
	for _, x := range v {
		dst = append(dst, x-sub)
	}
	return dst
}
