package capturetest

import (
	"math"
	"strings"
	"testing"

	"hubbub/protocol/hint"
)

// Power is the mean square of the samples at one frequency and at all others,
// by least squares for a sine and a cosine.
func Power(x []float32, rate int, freq float64) (at, rest float64) {
	var ss, cc, sc, xs, xc, xx float64
	for i, v := range x {
		s, c := math.Sincos(2 * math.Pi * freq * float64(i) / float64(rate))
		ss += s * s
		cc += c * c
		sc += s * c
		xs += float64(v) * s
		xc += float64(v) * c
		xx += float64(v) * float64(v)
	}
	det := ss*cc - sc*sc
	a, b := (xs*cc-xc*sc)/det, (xc*ss-xs*sc)/det
	fit := a*xs + b*xc
	n := float64(len(x))
	return fit / n, math.Max(0, xx-fit) / n
}

// DB is a ratio of powers in decibels.
func DB(ratio float64) float64 { return 10 * math.Log10(ratio) }

// Tone is a sine of amplitude 0.5.
func Tone(rate int, freq float64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(0.5 * math.Sin(2*math.Pi*freq*float64(i)/float64(rate)))
	}
	return x
}

// Same expects the wanted samples, each within a distance.
func Same(t testing.TB, name string, got, want []float32, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d samples, want %d", name, len(got), len(want))
		return
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= within) {
			t.Errorf("%s: sample %d is %g, want %g", name, i, got[i], want[i])
			return
		}
	}
}

// Rejected expects the error of an input that does not open: one line that has
// text in it, and a hint.
func Rejected(t testing.TB, name string, err error, text string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: opens", name)
		return
	}
	if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") || hint.Of(err) == "" {
		t.Errorf("%s: %q, hint %q; want %q in it", name, err, hint.Of(err), text)
	}
}
