package capturetest

import "math"

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
