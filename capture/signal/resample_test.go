package signal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hubbub/capture/capturetest"

	"pgregory.net/rapid"
)

// convertRate resamples in one block.
func convertRate(x []float32, from, to int) []float32 {
	r := NewResampler(from, to)
	return r.Flush(r.Push(x, nil))
}

var testRates = []int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 47999, 48000, 96000}

// TestPassband: a tone below 7 kHz (or 0.87 of the input's Nyquist frequency)
// keeps its level and phase, and nothing is added to it.
func TestPassband(t *testing.T) {
	for _, rate := range testRates {
		top := math.Min(7000, 0.87*float64(rate)/2)
		for _, f := range []float64{60, 440, 1000, 0.5 * top, 0.8 * top, top} {
			n := rate / 4
			out := convertRate(capturetest.Tone(rate, f, n), rate, SampleRate)
			if want := (n*SampleRate + rate - 1) / rate; len(out) != want {
				t.Fatalf("%d Hz: %d samples, want %d", rate, len(out), want)
			}
			mid := out[SampleRate/16 : 3*SampleRate/16]
			at, rest := capturetest.Power(mid, SampleRate, f)
			if loss := capturetest.DB(at / 0.125); math.Abs(loss) > 0.5 {
				t.Errorf("%d Hz: %.0f Hz changes by %+.2f dB", rate, f, loss)
			}
			if d := capturetest.DB(rest/0.125 + 1e-20); d > -60 {
				t.Errorf("%d Hz: %.0f Hz adds %.1f dB at other frequencies", rate, f, d)
			}
			// Time: the phase is that of the input.
			worst := 0.0
			for i, v := range mid {
				want := 0.5 * math.Sin(2*math.Pi*f*float64(i+SampleRate/16)/SampleRate)
				worst = math.Max(worst, math.Abs(float64(v)-want))
			}
			if worst > 0.03 {
				t.Errorf("%d Hz: %.0f Hz is off by %.3f: late or early", rate, f, worst)
			}
		}
	}
}

// TestStopband: frequencies above 8 kHz are removed, wherever they would alias to.
func TestStopband(t *testing.T) {
	for _, rate := range testRates {
		// Just above the edge, then at growing distances.
		for f := 8000.0; f < float64(rate)/2; f += 40 + 0.13*f {
			out := convertRate(capturetest.Tone(rate, f, rate/4), rate, SampleRate)
			mid := out[SampleRate/16 : 3*SampleRate/16]
			sum := 0.0
			for _, v := range mid {
				sum += float64(v) * float64(v)
			}
			if d := capturetest.DB(sum/float64(len(mid))/0.125 + 1e-20); d > -60 {
				t.Errorf("%d Hz: %.0f Hz is only %.1f dB down", rate, f, d)
			}
		}
	}
}

// TestResamplerBlocks: the output does not depend on the block sizes, to the bit.
func TestResamplerBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]int{8000, 11025, 22050, 44100, 48000, 47999, 6000}).Draw(t, "rate")
		n := rapid.IntRange(0, 5000).Draw(t, "samples")
		r := rand.New(rand.NewPCG(uint64(n), 1))
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.Float64()*2 - 1)
		}
		atOnce := convertRate(x, from, SampleRate)
		if want := (n*SampleRate + from - 1) / from; len(atOnce) != want {
			t.Fatalf("%d samples at %d Hz became %d, want %d", n, from, len(atOnce), want)
		}
		rs := NewResampler(from, SampleRate)
		var parts []float32
		for rest := x; len(rest) > 0; {
			k := rapid.IntRange(0, min(len(rest), 1700)).Draw(t, "block")
			if k == 0 {
				k = 1
			}
			parts = rs.Push(rest[:k], parts)
			rest = rest[k:]
		}
		parts = rs.Flush(parts)
		if !slices.Equal(atOnce, parts) {
			t.Fatal("blocks change the result")
		}
	})
}

func BenchmarkResample(b *testing.B) {
	for _, rate := range []int{8000, 44100, 48000, 96000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			rs := NewResampler(rate, SampleRate)
			x := capturetest.Tone(rate, 440, rate/10)
			var out []float32
			b.ReportAllocs()
			for b.Loop() {
				out = rs.Push(x, out[:0])
			}
			b.ReportMetric(0.1*float64(b.N)/b.Elapsed().Seconds(), "x-realtime")
		})
	}
}
