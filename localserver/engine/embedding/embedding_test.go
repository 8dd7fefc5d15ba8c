package embedding

import (
	"math"
	"math/rand/v2"
	"testing"
)

// sameTrunk compares every frame that the stream still holds.
func sameTrunk(t *testing.T, s *Stream, want image, tol float64) {
	t.Helper()
	if s.Len() != want.t {
		t.Fatalf("%d frames, want %d", s.Len(), want.t)
	}
	for j := s.First(); j < s.Len(); j++ {
		got := s.Trunk().Frame(j)
		for c := range TrunkSize {
			if w := float64(want.v[c*want.t+j]); !(math.Abs(float64(got[Column(c)])-w) <= tol*max(1, math.Abs(w))) {
				t.Fatalf("frame %d of %d (%d final), value %d: %v, want %v", j, s.Len(), s.Trunk().Final(), c, got[Column(c)], w)
			}
		}
	}
}

// TestStreamIsTheNetwork: at any length, the stream holds what the whole network
// gives for the frames so far.
func TestStreamIsTheNetwork(t *testing.T) {
	f := randomFile(t)
	ref, m := reference{t, f}, New(f)
	x := frames(1, 150)
	for _, steps := range [][]int{{1, 2, 5, 50, 13}, {25, 24, 61}, {130, 7}} {
		s, n := m.NewStream(40), 0
		for _, k := range steps {
			s.Append(x[n*bands : (n+k)*bands])
			s.Update()
			n += k
			sameTrunk(t, s, ref.trunk(x[:n*bands]), 1e-4)
			if n > 100 && (s.Trunk().Final() < n/Step-9 || s.Len()-s.First() < min(40, s.Len())) {
				t.Fatalf("of %d frames %d are final and %d held", s.Len(), s.Trunk().Final(), s.Len()-s.First())
			}
		}
	}
}

func TestChunkingDoesNotMatter(t *testing.T) {
	m, x, r := New(randomFile(t)), frames(2, 500), rand.New(rand.NewPCG(1, 1))
	a, b := m.NewStream(60), m.NewStream(60)
	for n := 0; n < 500; {
		k := min(1+r.IntN(60), 500-n)
		a.Append(x[n*bands : (n+k)*bands])
		if r.IntN(2) == 0 {
			a.Update()
		}
		n += k
	}
	b.Append(x)
	a.Update()
	b.Update()
	for j := max(a.First(), b.First()); j < a.Len(); j++ {
		for i, v := range a.Trunk().Frame(j) {
			if v != b.Trunk().Frame(j)[i] {
				t.Fatalf("frame %d value %d: %v and %v", j, i, v, b.Trunk().Frame(j)[i])
			}
		}
	}
}

func sameVector(t *testing.T, got []float32, want []float64, tol float64) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= tol) {
			t.Fatalf("value %d: %v, want %v", i, got[i], w)
		}
	}
}

func TestHeadIsTheNetwork(t *testing.T) {
	f := randomFile(t)
	ref, m := reference{t, f}, New(f)
	x := frames(3, 201)
	s := m.NewStream(50)
	s.Append(x)
	s.Update()
	h := ref.trunk(x)
	r := rand.New(rand.NewPCG(2, 1))
	const count = 2*batchSize + 3
	var got [count][Size]float32
	var masks [count][50]float32
	for k := range masks {
		for i := range masks[k] {
			if r.IntN(3) > 0 {
				masks[k][i] = float32(r.Float64())
			}
		}
		if !s.Embed(s.Len()-50, masks[k][:], got[k][:]) {
			t.Fatal("no embedding")
		}
	}
	s.Flush()
	for k, mask := range masks {
		sameVector(t, got[k][:], ref.head(h, h.t-50, mask[:]), 1e-4)
		var alone [Size]float32
		s.Embed(s.Len()-50, mask[:], alone[:])
		if s.Flush(); alone != got[k] {
			t.Error("an embedding depends on those that are computed with it")
		}
	}
	if s.Embed(s.Len()-50, make([]float32, 50), got[0][:]) {
		t.Error("an embedding of nothing")
	}
	if s.Embed(s.Len()+5, []float32{1, 1}, got[0][:]) {
		t.Error("an embedding of the future")
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	s := New(randomFile(t)).NewStream(125)
	x, mask, v := frames(5, 50), make([]float32, 125), make([]float32, Size)
	for i := range mask {
		mask[i] = 1
	}
	step := func() {
		s.Append(x)
		s.Update()
		s.Embed(s.Len()-125, mask, v)
		s.Flush()
	}
	steps := func() {
		for range 20 {
			step()
		}
	}
	steps()
	if n := testing.AllocsPerRun(1, steps); n != 0 { // also if the memory grows once in a while
		t.Errorf("%v allocations in 20 steps", n)
	}
}

func TestColumnIsInvertible(t *testing.T) {
	for i := range TrunkSize {
		if exported(Column(i)) != i {
			t.Fatalf("column %d comes back as %d", i, exported(Column(i)))
		}
	}
}
