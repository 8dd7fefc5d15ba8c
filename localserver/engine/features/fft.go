package features

import "math"

// fftSize is the length of the transform: 400 windowed samples and zeros.
const fftSize = 512

const half = fftSize / 2

// fft computes power spectra of real frames of fftSize samples, in float64, by
// a complex transform of half the length (radix 4 after Stockham: no bit
// reversal, four passes over 256 values) and one pass that unfolds it.
type fft struct {
	re, im, re2, im2 [half]float64
}

// twiddle holds e^(-2πi k/256) for the passes, unfold e^(-2πi k/512) for the last one.
var twiddle, unfold = func() (t, u [half]struct{ re, im float64 }) {
	for k := range half {
		s, c := math.Sincos(-2 * math.Pi * float64(k) / half)
		t[k].re, t[k].im = c, s
		s, c = math.Sincos(-2 * math.Pi * float64(k) / fftSize)
		u[k].re, u[k].im = c, s
	}
	return
}()

// power fills p with |X_k|², k = 0..256, of the real frame x.
func (f *fft) power(x *[fftSize]float64, p *[half + 1]float64) {
	for i := range half {
		f.re[i], f.im[i] = x[2*i], x[2*i+1]
	}
	f.pass(&f.re, &f.im, &f.re2, &f.im2, 1)
	f.pass(&f.re2, &f.im2, &f.re, &f.im, 4)
	f.pass(&f.re, &f.im, &f.re2, &f.im2, 16)
	f.pass(&f.re2, &f.im2, &f.re, &f.im, 64)
	ar, ai := &f.re, &f.im
	// Even and odd samples' transforms are the sum and the difference of Z_k and
	// conj(Z_-k); with the twiddle they make X_k, and conj(X_256-k) beside it.
	for k := uint8(1); k <= half/2; k++ {
		j := -k // modulo 256
		er, ei := (ar[k]+ar[j])/2, (ai[k]-ai[j])/2
		or, oi := (ai[k]+ai[j])/2, (ar[j]-ar[k])/2
		u := &unfold[k]
		tr, ti := or*u.re-oi*u.im, or*u.im+oi*u.re
		re, im := er+tr, ei+ti
		p[k] = re*re + im*im
		re, im = er-tr, ei-ti
		p[j] = re*re + im*im
	}
	s, d := ar[0]+ai[0], ar[0]-ai[0]
	p[0], p[half] = s*s, d*d
}

// pass is one radix-4 pass with stride s, from a to b. An index is a byte, which
// cannot leave an array of 256.
func (f *fft) pass(ar, ai, br, bi *[half]float64, s int) {
	const quarter = half / 4
	step := uint8(s)
	for q := range quarter / s {
		w1, w2, w3 := &twiddle[uint8(q*s)], &twiddle[uint8(2*q*s)], &twiddle[uint8(3*q*s)]
		i0, o0 := uint8(s*q), uint8(4*s*q)
		for range s {
			i1, i2, i3 := i0+quarter, i0+2*quarter, i0+3*quarter
			o1, o2, o3 := o0+step, o0+2*step, o0+3*step
			sr, si := ar[i0]+ar[i2], ai[i0]+ai[i2]
			dr, di := ar[i0]-ar[i2], ai[i0]-ai[i2]
			tr, ti := ar[i1]+ar[i3], ai[i1]+ai[i3]
			jr, ji := ai[i1]-ai[i3], ar[i3]-ar[i1] // -i (b - d)
			br[o0], bi[o0] = sr+tr, si+ti
			ur, ui := dr+jr, di+ji
			br[o1], bi[o1] = ur*w1.re-ui*w1.im, ur*w1.im+ui*w1.re
			ur, ui = sr-tr, si-ti
			br[o2], bi[o2] = ur*w2.re-ui*w2.im, ur*w2.im+ui*w2.re
			ur, ui = dr-jr, di-ji
			br[o3], bi[o3] = ur*w3.re-ui*w3.im, ur*w3.im+ui*w3.re
			i0++
			o0++
		}
	}
}
