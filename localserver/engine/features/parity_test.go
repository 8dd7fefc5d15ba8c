package features

import (
	"math"
	"os"
	"testing"

	"hubbub/localserver/engine/weights"
	"hubbub/protocol/testkit"
)

// TestParity compares with what PyTorch and SciPy make of a synthetic signal.
func TestParity(t *testing.T) {
	p := weights.MustRead(testkit.Must(os.ReadFile("../testdata/parity.hubw"))(t))
	signal := p.Tensor("signal", 6*SampleRate)
	n := Frames(len(signal))
	logmel, want := p.Tensor("logmel", n, Bands), p.Tensor("frames", n, Bands)
	s := New(weights.Default()).NewStream()
	var worst, worstMel float64
	var got []float32
	for at := 0; at < len(signal); at += Hop { // so that energies can be looked at frame by frame
		before := len(got) / Bands
		got = s.Push(signal[at:min(at+Hop, len(signal))], got)
		for b := range Bands {
			if len(got)/Bands > before {
				worstMel = max(worstMel, math.Abs(s.energy[b]-float64(logmel[before*Bands+b])))
			}
		}
	}
	for i, v := range want {
		worst = max(worst, math.Abs(float64(got[i]-v)))
	}
	t.Logf("%d frames: log-mel within %.1e, normalised within %.1e", n, worstMel, worst)
	if len(got) != len(want) || !(worst < 1e-4) || !(worstMel < 1e-4) {
		t.Fatalf("%d values instead of %d, off by %v and %v", len(got), len(want), worstMel, worst)
	}
}
