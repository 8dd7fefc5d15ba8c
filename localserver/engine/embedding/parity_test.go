package embedding

import (
	"fmt"
	"math"
	"os"
	"testing"

	"hubbub/localserver/engine/weights"
	"hubbub/protocol/testkit"
)

// TestParity compares with the stored outputs of PyTorch for a synthetic signal.
func TestParity(t *testing.T) {
	f, p := weights.Default(), weights.MustRead(testkit.Must(os.ReadFile("../testdata/parity.hubw"))(t))
	if p.Version() != f.Version() {
		t.Fatalf("vectors of version %s, weights of version %s", p.Version(), f.Version())
	}
	m := New(f)
	x := p.Tensor("frames", 598, bands)
	check := func(what string, worst float64) {
		t.Helper()
		t.Logf("%-10s within %.1e", what, worst)
		if !(worst < 1e-4) {
			t.Errorf("%s is off by %v", what, worst)
		}
	}
	off := func(got, want float32) float64 {
		return math.Abs(float64(got)-float64(want)) / max(1, math.Abs(float64(want)))
	}
	s := m.NewStream(1000)
	s.Append(x)
	s.Update()
	for i, track := range s.outs {
		name, plane := "emb.stem", m.planes[i]
		if i > 0 {
			name = fmt.Sprintf("emb.blk%d", i-1)
		}
		pad := (plane.Size() - plane.Bands*plane.C) / 2
		for _, end := range []string{".first", ".last"} {
			want := p.Tensor(name+end, plane.C, plane.Bands, 10)
			worst := 0.0
			for j := range 10 {
				at := j
				if end == ".last" {
					at = track.Len() - 10 + j
				}
				frame := track.Frame(at)[pad:]
				for c := range plane.C {
					for b := range plane.Bands {
						worst = max(worst, off(frame[b*plane.C+c], want[(c*plane.Bands+b)*10+j]))
					}
				}
			}
			check(name+end, worst)
		}
	}
	T := len(x)/bands/framesPerStep + 1
	trunk, masks, want := p.Tensor("trunk", TrunkSize, T), p.Tensor("masks", 2, T), p.Tensor("embeddings", 2, Size)
	worst := 0.0
	for j := range s.Trunk().Len() {
		for i, v := range s.Trunk().Frame(j) {
			worst = max(worst, off(v, trunk[Exported(i)*T+j]))
		}
	}
	check("trunk", worst)
	got := make([]float32, Size)
	for k := range 2 {
		if !s.Embed(0, masks[k*T:][:T], got) {
			t.Fatal("no embedding")
		}
		s.Flush()
		worst := 0.0
		for i, v := range got {
			worst = max(worst, math.Abs(float64(v-want[k*Size+i])))
		}
		check("embedding", worst)
	}
}
