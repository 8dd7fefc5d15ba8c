package segmentation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hubbub/localserver/engine/embedding"
	"hubbub/localserver/engine/nn"
	"hubbub/localserver/engine/weights"
	"hubbub/protocol/testkit"
)

// pair is both networks over one stream.
type pair struct {
	emb *embedding.Stream
	seg *Stream
}

func newPair(t testing.TB, window int) (pair, *Model) {
	t.Helper()
	e, m := embedding.New(weights.Default()), New(weights.Default())
	return pair{e.NewStream(window), m.NewStream(window)}, m
}

func (p pair) push(frames []float32) {
	p.emb.Append(frames)
	p.seg.Append(frames)
	p.emb.Update()
	p.seg.Update(p.emb.Trunk())
}

func off(got, want float32) float64 {
	return math.Abs(float64(got)-float64(want)) / max(1, math.Abs(float64(want)))
}

// TestParity compares every stage with PyTorch on a stored synthetic signal.
func TestParity(t *testing.T) {
	r := weights.MustRead(testkit.Must(os.ReadFile("../testdata/parity.hubw"))(t))
	x := r.Tensor("frames", 598, bands)
	check := func(what string, worst float64) {
		t.Helper()
		t.Logf("%-14s within %.1e", what, worst)
		if !(worst < 1e-4) {
			t.Errorf("%s is off by %v", what, worst)
		}
	}
	p, m := newPair(t, 1000)
	p.push(x)
	s := p.seg
	c2, proj := nn.NewTrack(channels, 0, 1000), nn.NewTrack(channels, 0, 1000)
	m.c2.Step(s.a, c2, nil, false)
	proj.Extend(p.emb.Trunk().Len())
	m.proj.Apply(nn.Rows{Groups: 1, N: p.emb.Trunk().Len(), Src: p.emb.Trunk().From(0), SrcStride: embedding.TrunkSize, Dst: proj.From(0), DstStride: channels})
	tracks := map[string]*nn.Track{"seg.c1": s.a, "seg.c2": c2, "seg.proj": proj, "seg.x0": s.x[0]}
	for i := range dilations {
		tracks[fmt.Sprintf("seg.blk%d", i)] = s.x[i+1]
	}
	for name, track := range tracks {
		worst := 0.0
		first, last := r.Tensor(name+".first", channels, 10), r.Tensor(name+".last", channels, 10)
		for j := range 10 {
			for c := range channels {
				worst = max(worst, off(track.Frame(j)[c], first[c*10+j]), off(track.Frame(track.Len() - 10 + j)[c], last[c*10+j]))
			}
		}
		check(name, worst)
	}
	T := s.Len()
	stream, gru, want := r.Tensor("seg.stream", T, channels), r.Tensor("seg.gru", Window, 2*hidden), r.Tensor("seg.logp", Split*Window, Classes)
	worst := 0.0
	for j := range T {
		for c, v := range s.x[len(dilations)].Frame(j) {
			worst = max(worst, off(v, stream[j*channels+c]))
		}
	}
	check("stream", worst)
	got := s.Window(T-Window, T, nil)
	worst = 0
	for i, v := range gru {
		worst = max(worst, off(s.gru[i], v))
	}
	check("gru", worst)
	if worst = 0; len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i, v := range want {
		worst = max(worst, off(got[i], v))
	}
	check("log p", worst)
}

func frames(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 3))
	x := make([]float32, n*bands)
	for i := range x {
		x[i] = float32(r.NormFloat64() * (1 + math.Sin(float64(i/bands)/9)))
	}
	return x
}

// TestStreamIsTheNetwork: a stream that gets its frames in parts gives the same as one
// that gets them at once, and final frames do not change.
func TestStreamIsTheNetwork(t *testing.T) {
	x, r := frames(1, 900), rand.New(rand.NewPCG(2, 1))
	p, _ := newPair(t, Window)
	final := map[int][]float32{}
	for n := 0; n < 900; {
		k := min(1+r.IntN(80), 900-n)
		p.push(x[n*bands : (n+k)*bands])
		n += k
		whole, _ := newPair(t, Window)
		whole.push(x[:n*bands])
		a, b := p.seg.Window(n/4-100, p.seg.Len(), nil), whole.seg.Window(n/4-100, whole.seg.Len(), nil)
		if len(a) != len(b) || len(a) == 0 {
			t.Fatalf("after %d frames %d values, want %d", n, len(a), len(b))
		}
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("after %d frames value %d of %d is %v, want %v", n, i, len(a), a[i], b[i])
			}
		}
		for j := p.seg.First(); j < p.seg.gates.Final(); j++ {
			now := p.seg.gates.Frame(j)
			if old, ok := final[j]; !ok {
				final[j] = append([]float32(nil), now...)
			} else {
				for i := range old {
					if old[i] != now[i] {
						t.Fatalf("after %d frames final frame %d changed", n, j)
					}
				}
			}
		}
		if n > 300 && p.seg.gates.Final() < n/4-42 {
			t.Fatalf("of %d frames only %d are final", p.seg.Len(), p.seg.gates.Final())
		}
	}
}

func TestProbabilitiesSumToOne(t *testing.T) {
	p, _ := newPair(t, Window)
	if got := p.seg.Window(0, 10, nil); len(got) != 0 {
		t.Fatalf("%d values from an empty stream", len(got))
	}
	p.push(frames(4, 3))
	p.push(frames(5, 200))
	got := p.seg.Window(-10, 1000, nil)
	if len(got) != p.seg.Len()*Split*Classes {
		t.Fatalf("%d values for %d frames", len(got), p.seg.Len())
	}
	for i := 0; i < len(got); i += Classes {
		sum := 0.0
		for _, v := range got[i : i+Classes] {
			sum += math.Exp(float64(v))
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Fatalf("frame %d sums to %v", i/Classes, sum)
		}
	}
}
