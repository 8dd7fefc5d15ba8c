package engine

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

const (
	analysisWindow = 400 // samples: 25 ms
	analysisHop    = 160 // samples: 10 ms
	analysisFFT    = 512
	melBands       = 30
	cepstralOrder  = 19 // coefficients 1 to 19: loudness is left out
)

// cepstra computes mel-frequency cepstral coefficients (Davis and Mermelstein,
// "Comparison of parametric representations for monosyllabic word
// recognition", 1980) and the level, frame by frame.
type cepstra struct {
	fft      *fourier.FFT
	window   [analysisWindow]float64
	bank     [melBands][]float64 // from bin first[b] on
	first    [melBands]int
	cosine   [cepstralOrder][melBands]float64
	sequence [analysisFFT]float64
	spectrum [analysisFFT/2 + 1]complex128
	log      [melBands]float64
}

func newCepstra() *cepstra {
	c := &cepstra{fft: fourier.NewFFT(analysisFFT)}
	for i := range c.window {
		c.window[i] = 0.54 - 0.46*math.Cos(2*math.Pi*float64(i)/(analysisWindow-1))
	}
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	low, high := mel(60), mel(7600)
	edge := func(i int) float64 {
		m := low + (high-low)*float64(i)/(melBands+1)
		return 700 * (math.Pow(10, m/2595) - 1)
	}
	for b := range c.bank {
		from, middle, to := edge(b), edge(b+1), edge(b+2)
		for bin := range c.spectrum {
			f := float64(bin) * SampleRate / analysisFFT
			if f <= from || f >= to {
				continue
			}
			if len(c.bank[b]) == 0 {
				c.first[b] = bin
			}
			c.bank[b] = append(c.bank[b], min((f-from)/(middle-from), (to-f)/(to-middle)))
		}
		for k := range c.cosine {
			c.cosine[k][b] = math.Sqrt(2.0/melBands) * math.Cos(math.Pi*float64(k+1)*(float64(b)+0.5)/melBands)
		}
	}
	return c
}

// frame analyses analysisWindow samples and returns their level in dB of full
// scale.
func (c *cepstra) frame(samples []float32, out *[cepstralOrder]float64) (level float64) {
	energy := 0.0
	for i, x := range samples[:analysisWindow] {
		energy += float64(x) * float64(x)
		c.sequence[i] = float64(x) * c.window[i]
	}
	c.fft.Coefficients(c.spectrum[:], c.sequence[:])
	for b, weights := range c.bank {
		sum := 1e-5 // about -80 dB of full scale: below it there is only hiss
		for i, w := range weights {
			x := c.spectrum[c.first[b]+i]
			sum += w * (real(x)*real(x) + imag(x)*imag(x))
		}
		c.log[b] = math.Log(sum)
	}
	for k := range out {
		sum := 0.0
		for b, l := range c.log {
			sum += c.cosine[k][b] * l
		}
		out[k] = sum
	}
	return 10 * math.Log10(energy/analysisWindow+1e-10)
}
