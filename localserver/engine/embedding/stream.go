package embedding

import (
	"math"

	"hubbub/localserver/engine/nn"
)

// lookBack is how far behind its final frames a layer's input is still read, by
// the taps of two 3x3 convolutions and the shortcut beside them.
const lookBack = 4

// batchSize is how many embeddings the last layer computes at a time.
const batchSize = 12

// Stream is the trunk of one stream, with the attention of its frames. One
// goroutine may use it; after its first seconds it allocates nothing.
type Stream struct {
	m         *Model
	in        *nn.Track // feature frames with a zero above and below
	outs      [len(plan) + 1]*nn.Track
	mids      [len(plan)]*nn.Track
	attention *nn.Track // e^attention of each trunk frame
	scratch   []float32
	sums      sums
	pooled    []float32   // of the embeddings to come: mean and standard deviation of each trunk value
	waiting   [][]float32 // where these embeddings are to be written
	outputs   []float32   // of the last layer
}

// sums are those of attentive statistics pooling over the frames of a mask:
// weights, weighted values and weighted squares.
type sums struct{ w, wx, wxx [TrunkSize]float32 }

// NewStream begins a stream that keeps the newest window steps of 40 ms. With a
// window of 5 s and an Update every 0.5 s it takes 1.3 MB.
func (m *Model) NewStream(window int) *Stream {
	s := &Stream{m: m, in: nn.NewTrack(bands+2, 1, lookBack), attention: nn.NewTrack(TrunkSize, 0, window),
		pooled: make([]float32, batchSize*2*TrunkSize), waiting: make([][]float32, 0, batchSize), outputs: make([]float32, batchSize*Size)}
	for i, p := range m.planes {
		keep, edge := lookBack, 1
		if i == len(m.planes)-1 {
			keep, edge = window, 0
		}
		s.outs[i] = nn.NewTrack(p.Size(), edge, keep)
		if i > 0 {
			p.Padded = true
			s.mids[i-1] = nn.NewTrack(p.Size(), 1, lookBack)
		}
	}
	return s
}

// Append takes feature frames, 64 values each. They count from the next Update
// on, which should come at least once a second: until then they are held in
// memory.
func (s *Stream) Append(frames []float32) { s.in.Push(frames, bands, 1) }

// Update computes the trunk up to the newest frame. Frames near it are computed
// as if the stream ended there, and again by later updates until they are final.
// How often it is called changes the cost (about 9 frames of the last layers are
// computed twice each time), but not the final frames.
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

// attend computes the attention of the frames that changed. A softmax does not
// change when all its arguments move together, so the exponential of a frame can
// be computed once, whatever the mask it is pooled under.
func (s *Stream) attend() {
	trunk, from := s.Trunk(), s.attention.Final()
	n := trunk.Len() - from
	if n <= 0 {
		return
	}
	if need := n * attentionSize; cap(s.scratch) < need {
		s.scratch = make([]float32, need+need/4)
	}
	h := s.scratch[:n*attentionSize]
	s.m.att1.Apply(nn.Rows{Groups: 1, N: n, Src: trunk.From(from), SrcStride: TrunkSize, Dst: h, DstStride: attentionSize})
	nn.Tanh(h, h)
	s.attention.Extend(trunk.Len())
	e := s.attention.From(from)[:n*TrunkSize]
	s.m.att2.Apply(nn.Rows{Groups: 1, N: n, Src: h, SrcStride: attentionSize, Dst: e, DstStride: TrunkSize})
	nn.Exp(e, e)
	s.attention.SetFinal(trunk.Final())
}

// Trunk is the trunk's output, TrunkSize values for each step of 40 ms. The
// caller may read it until the next Update.
func (s *Stream) Trunk() *nn.Track { return s.outs[len(plan)] }

// First is the oldest step that Embed can still use.
func (s *Stream) First() int { return max(s.Trunk().First(), s.attention.First()) }

// Embed computes the embedding of steps from, from+1, ... and writes it to dst (Size
// values, length 1) no later than at the next Flush. mask weighs the steps from 0 to 1,
// by how much of the 40 ms is the speaker's. Steps that are no longer held, or not
// computed yet, are left out. Embed reports false, and writes nothing, when no step is left.
func (s *Stream) Embed(from int, mask, dst []float32) bool {
	trunk, p := s.Trunk(), &s.sums
	*p = sums{}
	empty := true
	for i, m := range mask {
		t := from + i
		if !(m > 0) || t < s.First() || t >= trunk.Len() {
			continue
		}
		empty = false
		nn.Accumulate(p.w[:], p.wx[:], p.wxx[:], s.attention.Frame(t), trunk.Frame(t), m)
	}
	if empty {
		return false
	}
	pooled := s.pooled[len(s.waiting)*2*TrunkSize:][:2*TrunkSize]
	for i, w := range p.w {
		mean := p.wx[i] / w
		pooled[i] = mean
		pooled[TrunkSize+i] = float32(math.Sqrt(float64(max(p.wxx[i]/w-mean*mean, 1e-5))))
	}
	if s.waiting = append(s.waiting, dst[:Size]); len(s.waiting) == batchSize {
		s.Flush()
	}
	return true
}

// Flush writes the embeddings of all calls of Embed before it. The last layer computes
// them in one product, which reads its weights once for several embeddings.
func (s *Stream) Flush() {
	s.m.fc.Apply(nn.Rows{Groups: 1, N: len(s.waiting), Src: s.pooled, SrcStride: 2 * TrunkSize, Dst: s.outputs, DstStride: Size})
	for i, dst := range s.waiting {
		output, sum := s.outputs[i*Size:][:Size], 0.0
		for _, v := range output {
			sum += float64(v) * float64(v)
		}
		scale := float32(1 / max(math.Sqrt(sum), 1e-12))
		for k, v := range output {
			dst[k] = v * scale
		}
	}
	s.waiting = s.waiting[:0]
}
