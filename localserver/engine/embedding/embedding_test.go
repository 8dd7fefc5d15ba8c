package embedding

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hubbub/localserver/engine/weights"
)

// framesPerStep is the number of feature frames of 10 ms in a step of the trunk.
const framesPerStep = 4

// frames is something like speech for the network: correlated, with pauses.
func frames(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 3))
	x := make([]float32, n*bands)
	for i := range x {
		x[i] = float32(r.NormFloat64() * (1 + math.Sin(float64(i/bands)/9)))
		if i >= bands {
			x[i] += x[i-bands] * .6
		}
	}
	return x
}

// TestStreamIsTheNetwork: at any length, a stream that gets its frames in parts holds and
// pools the same as one that gets them at once.
func TestStreamIsTheNetwork(t *testing.T) {
	const window = 40
	m, x, r := New(weights.Default()), frames(1, 500), rand.New(rand.NewPCG(1, 1))
	s := m.NewStream(window)
	for n := 0; n < 500; {
		k := min(1+r.IntN(60), 500-n)
		s.Append(x[n*bands : (n+k)*bands])
		if n += k; n < 500 && r.IntN(2) == 0 {
			continue
		}
		s.Update()
		whole := m.NewStream(window)
		whole.Append(x[:n*bands])
		whole.Update()
		if s.Trunk().Len() != whole.Trunk().Len() || s.Trunk().Len()-s.First() < min(window, s.Trunk().Len()) || s.Trunk().Final() < n/framesPerStep-9 {
			t.Fatalf("of %d frames there are %d steps, want %d; %d are final and %d held", n, s.Trunk().Len(), whole.Trunk().Len(), s.Trunk().Final(), s.Trunk().Len()-s.First())
		}
		for j := max(s.First(), whole.First()); j < s.Trunk().Len(); j++ {
			if !slices.Equal(s.Trunk().Frame(j), whole.Trunk().Frame(j)) {
				t.Fatalf("after %d frames, step %d of %d (%d final) differs", n, j, s.Trunk().Len(), s.Trunk().Final())
			}
		}
		mask := slices.Repeat([]float32{1}, min(window, s.Trunk().Len()))
		var got, want [Size]float32
		for s, e := range map[*Stream]*[Size]float32{s: &got, whole: &want} {
			if !s.Embed(s.Trunk().Len()-len(mask), mask, e[:]) {
				t.Fatal("no embedding")
			}
			s.Flush()
		}
		if got != want {
			t.Fatalf("after %d frames, the embedding of the newest %d steps differs", n, len(mask))
		}
	}
}

// TestEmbeddingsAreIndependent: an embedding does not depend on those that are computed
// with it.
func TestEmbeddingsAreIndependent(t *testing.T) {
	s, r := New(weights.Default()).NewStream(50), rand.New(rand.NewPCG(2, 1))
	s.Append(frames(3, 201))
	s.Update()
	const count = 2*batchSize + 3
	var got [count][Size]float32
	var masks [count][50]float32
	for k := range masks {
		for i := range masks[k] {
			if r.IntN(3) > 0 {
				masks[k][i] = float32(r.Float64())
			}
		}
		if !s.Embed(s.Trunk().Len()-50, masks[k][:], got[k][:]) {
			t.Fatal("no embedding")
		}
	}
	s.Flush()
	for k, mask := range masks {
		var alone [Size]float32
		s.Embed(s.Trunk().Len()-50, mask[:], alone[:])
		if s.Flush(); alone != got[k] {
			t.Fatalf("embedding %d alone is another", k)
		}
	}
	if s.Embed(s.Trunk().Len()-50, make([]float32, 50), got[0][:]) {
		t.Error("an embedding of nothing")
	}
	if s.Embed(s.Trunk().Len()+5, []float32{1, 1}, got[0][:]) {
		t.Error("an embedding of the future")
	}
}
