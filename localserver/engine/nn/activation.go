package nn

import "math"

// expLimit bounds the argument of every exponential: e^±60 still sums and
// squares without overflow in float32, and no caller can tell it from infinity.
const expLimit = 60

// Exp sets dst[i] = e^src[i], arguments limited to ±60, with a relative error
// below 2e-7 within ±10 and below 1e-6 everywhere. dst may be src.
func Exp(dst, src []float32) { expSlice(dst, src) }

// Tanh sets dst[i] = tanh(src[i]) with an absolute error below 3e-7. dst may be src.
func Tanh(dst, src []float32) { tanhSlice(dst, src) }

// Constants of expf in Cephes (S. Moshier): ln 2 in two parts, and a polynomial
// for e^x on ±ln(2)/2.
const (
	log2e   = 1.44269504088896341
	ln2High = 0.693359375
	ln2Low  = -2.12194440e-4
	expC0   = 1.9875691500e-4
	expC1   = 1.3981999507e-3
	expC2   = 8.3334519073e-3
	expC3   = 4.1665795894e-2
	expC4   = 1.6666665459e-1
	expC5   = 5.0000001201e-1
)

func exp(x float32) float32 {
	// The comparisons are the kernels' min and max: a NaN becomes the limit.
	if !(x < expLimit) {
		x = expLimit
	}
	if !(x > -expLimit) {
		x = -expLimit
	}
	n := float32(math.RoundToEven(float64(x * log2e)))
	r := x - n*ln2High
	r -= n * ln2Low
	y := float32(expC0)
	y = y*r + expC1
	y = y*r + expC2
	y = y*r + expC3
	y = y*r + expC4
	y = y*r + expC5
	y = y*(r*r) + r + 1
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
}

func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }
func tanh(x float32) float32    { return 1 - 2/(1+exp(2*x)) }

func genericExp(dst, src []float32) {
	for i, v := range src {
		dst[i] = exp(v)
	}
}

func genericTanh(dst, src []float32) {
	for i, v := range src {
		dst[i] = tanh(v)
	}
}

// Accumulate adds one frame to the sums of a weighted pooling: with w = m*e[i],
// sw[i] += w, sx[i] += w*x[i], sxx[i] += w*x[i]*x[i]. All five slices have the
// same length, a multiple of 8.
func Accumulate(sw, sx, sxx, e, x []float32, m float32) {
	n := len(sw)
	accumulate(sw, sx[:n], sxx[:n], e[:n], x[:n], m)
}

func genericAccumulate(sw, sx, sxx, e, x []float32, m float32) {
	for i := range sw {
		w := m * e[i]
		sw[i] += w
		w *= x[i]
		sx[i] += w
		sxx[i] += w * x[i]
	}
}
