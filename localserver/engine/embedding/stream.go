package embedding

import "hubbub/localserver/engine/nn"

// lookBack is how far behind its settled frames a layer's input is still read,
// by the taps of two 3x3 convolutions and the shortcut beside them.
const lookBack = 4

// Stream is the trunk of one stream, with the attention of its frames. One
// goroutine may use it; after its first seconds it allocates nothing.
type Stream struct {
	m       *Model
	in      *nn.Track // feature frames with a zero above and below
	outs    [len(plan) + 1]*nn.Track
	mids    [len(plan)]*nn.Track
	weights *nn.Track // e^attention of each trunk frame
	scratch []float32
	pooled  []float32
	pool    Pool
}

// NewStream begins a stream that keeps the newest window frames of 40 ms. With
// a window of 5 s and an Update every 0.5 s it settles at 1.3 MB.
func (m *Model) NewStream(window int) *Stream {
	s := &Stream{m: m, in: nn.NewTrack(bands+2, 1, 1, lookBack), weights: nn.NewTrack(TrunkSize, 0, 0, window),
		pooled: make([]float32, 2*TrunkSize)}
	for i, p := range m.planes {
		keep, edge := lookBack, 1
		if i == len(m.planes)-1 {
			keep, edge = window, 0
		}
		s.outs[i] = nn.NewTrack(p.Size(), edge, edge, keep)
		if i > 0 {
			p.Padded = true
			s.mids[i-1] = nn.NewTrack(p.Size(), 1, 1, lookBack)
		}
	}
	return s
}

// Append takes feature frames, 64 values each. They show in Len and in
// everything else after the next Update, which should come at least once a
// second: what waits is held in memory.
func (s *Stream) Append(frames []float32) { s.in.Push(frames, bands, 1) }

// Update brings the trunk up to date: frames near the newest are computed as if
// the stream ended here, those from the last Update that were not settled anew.
// How often it is called changes the cost (each time, about 9 frames of the last
// layers are computed that will be again), never what is settled.
func (s *Stream) Update() {
	if !s.in.Read() {
		return
	}
	s.m.stem.Step(s.in, s.outs[0], nil, true)
	for i, b := range s.m.blocks {
		x, mid, y := s.outs[i], s.mids[i], s.outs[i+1]
		add := x
		if b.shortcut != nil {
			b.shortcut.Compute(x, y, nil, false)
			add = y
		}
		b.c1.Step(x, mid, nil, true)
		b.c2.Step(mid, y, add, true)
	}
	s.attend()
}

// attend computes the attention of the frames that changed. Softmax does not
// change when all its arguments move together, so that the exponential of a
// frame can be taken once, whatever mask it is pooled under.
func (s *Stream) attend() {
	trunk, from := s.Trunk(), s.weights.Settled()
	n := trunk.Len() - from
	if n <= 0 {
		return
	}
	if need := n * attention; cap(s.scratch) < need {
		s.scratch = make([]float32, need+need/4)
	}
	h := s.scratch[:n*attention]
	s.m.att1.Apply(nn.Rows{Groups: 1, N: n, Src: trunk.From(from), SrcStride: TrunkSize, Dst: h, DstStride: attention})
	nn.Tanh(h, h)
	s.weights.Extend(trunk.Len())
	e := s.weights.From(from)[:n*TrunkSize]
	s.m.att2.Apply(nn.Rows{Groups: 1, N: n, Src: h, SrcStride: attention, Dst: e, DstStride: TrunkSize})
	nn.Exp(e, e)
	s.weights.Settle(trunk.Settled())
}

// Trunk is the trunk's output, TrunkSize values for 40 ms. The caller may read
// it until the next Update.
func (s *Stream) Trunk() *nn.Track { return s.outs[len(plan)] }

// Len is the number of 40 ms frames so far, Settled the number of those that
// will not change any more, First the oldest that can still be pooled.
func (s *Stream) Len() int     { return s.Trunk().Len() }
func (s *Stream) Settled() int { return s.Trunk().Settled() }
func (s *Stream) First() int   { return max(s.Trunk().First(), s.weights.First()) }

// Bytes is the memory of the stream.
func (s *Stream) Bytes() int {
	n := s.in.Bytes() + s.weights.Bytes() + 4*(cap(s.scratch)+cap(s.pooled)) + s.pool.Bytes()
	for _, t := range s.outs {
		n += t.Bytes()
	}
	for _, t := range s.mids {
		n += t.Bytes()
	}
	return n
}
