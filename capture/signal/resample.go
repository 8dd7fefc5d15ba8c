package signal

import "math"

// The filter of the resampler. Below passEdge of the lower of the two Nyquist
// frequencies everything passes, from the Nyquist frequency on nothing does:
// for a target of 16 kHz, flat to 7.2 kHz and silent from 8 kHz.
const (
	passEdge        = 0.9
	stopAttenuation = 85.0 // dB
	// maxPhases bounds the table of exact filter phases. Ratios that need more
	// interpolate linearly between betweenPhases phases; the error is at most
	// (pi/betweenPhases)^2/8, 94 dB down.
	maxPhases     = 1024
	betweenPhases = 256
)

// A Resampler changes the rate of a mono signal by the ratio up/down in lowest
// terms, with a polyphase windowed-sinc filter (Kaiser window; see Crochiere
// and Rabiner, Multirate Digital Signal Processing, 1983, and Kaiser's formulas
// for its length and shape).
//
// It is linear-phase and centred: output sample n is the input at time
// n*down/up, so that timestamps remain correct. The output does not depend on
// the sizes of the input blocks, to the bit. It keeps one filter length of input.
type Resampler struct {
	up, down int
	taps     int         // of one phase
	phases   [][]float32 // phases[p][j] weighs input pos-taps/2+1+j; one more than the table's size when between is set
	between  bool        // up > maxPhases: interpolate between phases

	hist  []float32 // input from sample number base on
	base  int64
	in    int64 // samples of input so far
	pos   int64 // input sample at or before the next output sample
	phase int   // the next output lies phase/up of an input sample after pos
}

// NewResampler converts from one rate to another, both in Hz and positive.
func NewResampler(from, to int) *Resampler {
	g := gcd(from, to)
	r := &Resampler{up: to / g, down: from / g}
	if from == to {
		return r
	}
	// The prototype in terms of the input's rate: cut-off in the middle of the
	// transition band, as fractions of the rate.
	nyquist := 0.5 * math.Min(1, float64(to)/float64(from))
	width := nyquist * (1 - passEdge)
	cutoff := nyquist - width/2
	length := (stopAttenuation - 7.95) / (2.285 * 2 * math.Pi * width)
	beta := 0.1102 * (stopAttenuation - 8.7)
	half := int(math.Ceil(length/2)) + 1
	r.taps = 2 * half

	table := r.up
	if r.between = r.up > maxPhases; r.between {
		table = betweenPhases
	}
	n := table
	if r.between {
		n++ // the phase of the next input sample, to interpolate towards
	}
	r.phases = make([][]float32, n)
	flat := make([]float32, n*r.taps)
	weights := make([]float64, r.taps)
	for p := range r.phases {
		frac := float64(p) / float64(table)
		sum := 0.0
		for j := range weights {
			t := float64(j-half+1) - frac // distance from the output's time, in input samples
			weights[j] = 2 * cutoff * sinc(2*cutoff*t) * kaiser(t/float64(half), beta)
			sum += weights[j]
		}
		r.phases[p], flat = flat[:r.taps:r.taps], flat[r.taps:]
		for j, w := range weights {
			r.phases[p][j] = float32(w / sum) // the same gain for every phase: constant input gives constant output
		}
	}
	// Before the first sample there was silence.
	r.hist = make([]float32, half-1, 4*r.taps+8192)
	r.base = -int64(half - 1)
	return r
}

// Push appends to out the output samples that the new input completes.
func (r *Resampler) Push(samples, out []float32) []float32 {
	r.in += int64(len(samples))
	if r.taps == 0 {
		return append(out, samples...)
	}
	r.hist = append(r.hist, samples...)
	return r.drain(out, r.in)
}

// Flush ends the input and appends the remaining output samples, up to the end of
// the last input sample.
func (r *Resampler) Flush(out []float32) []float32 {
	if r.taps == 0 {
		return out
	}
	end := r.in
	r.hist = append(r.hist, make([]float32, r.taps)...)
	return r.drain(out, end)
}

// drain appends every output whose time lies before end and whose filter is
// covered by the history, then discards input that no later output needs.
func (r *Resampler) drain(out []float32, end int64) []float32 {
	half := int64(r.taps / 2)
	have := r.base + int64(len(r.hist))
	for r.pos < end && r.pos+half < have {
		first := r.pos - half + 1 - r.base
		x := r.hist[first : first+int64(r.taps)]
		if !r.between {
			out = append(out, dot(r.phases[r.phase], x))
		} else {
			out = append(out, r.interpolate(float64(r.phase)/float64(r.up)*betweenPhases, x))
		}
		r.phase += r.down
		r.pos += int64(r.phase / r.up)
		r.phase %= r.up
	}
	if drop := r.pos - half + 1 - r.base; drop > int64(4*r.taps) {
		drop = min(drop, int64(len(r.hist)))
		r.hist = append(r.hist[:0], r.hist[drop:]...)
		r.base += drop
	}
	return out
}

// interpolate applies the filter at a phase between two of the table.
func (r *Resampler) interpolate(phase float64, x []float32) float32 {
	p := int(phase)
	a, b := dot(r.phases[p], x), dot(r.phases[p+1], x)
	return a + float32(phase-float64(p))*(b-a)
}

// dot is the inner product of two slices of the same length, in four independent
// sums.
func dot(w, x []float32) float32 {
	x = x[:len(w)]
	var a, b, c, d float32
	i := 0
	for ; i+4 <= len(w); i += 4 {
		a += w[i] * x[i]
		b += w[i+1] * x[i+1]
		c += w[i+2] * x[i+2]
		d += w[i+3] * x[i+3]
	}
	for ; i < len(w); i++ {
		a += w[i] * x[i]
	}
	return (a + b) + (c + d)
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser is the window at x in -1..1, 0 outside.
func kaiser(x, beta float64) float64 {
	if x <= -1 || x >= 1 {
		return 0
	}
	return bessel0(beta*math.Sqrt(1-x*x)) / bessel0(beta)
}

// bessel0 is the modified Bessel function of the first kind, order 0, by its
// power series.
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-17*sum; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
