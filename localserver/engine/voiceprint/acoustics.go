package voiceprint

import (
	"math"
	"math/rand/v2"

	"hubbub/localserver/engine/features"
)

// A voiceprint is made in one recording condition and compared in others. So the
// networks also see the audio of a voiceprint as through a telephone line and as
// from across a room.

// The recording conditions of a voiceprint.
const (
	recorded = iota
	telephone
	farField
	conditions // how many
)

// simulateTelephone is audio as through a telephone line: 300 Hz to 3.4 kHz.
func simulateTelephone(samples []float32) []float32 {
	return lowpass(highpass(samples, 300), 3400)
}

const (
	// reverberation is the time in which the sound of a room decays by 60 dB, in
	// seconds.
	reverberation = 0.5
	// reflections is how many reflections stand for the room.
	reflections = 600
	// directToReverberant is the energy of the direct sound over that of all
	// reflections, and speechToNoise that of the audio over the room's noise.
	directToReverberant, speechToNoise = 1, 100
)

// simulateFarField is audio as from across a room with some noise; always the same room.
func simulateFarField(samples []float32) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	length := int(reverberation * features.SampleRate)
	first := features.SampleRate / 200 // 5 ms after the direct sound
	at, gain := make([]int, reflections), make([]float64, reflections)
	var energy float64
	for i := range at {
		at[i] = first + r.IntN(length-first)
		gain[i] = r.NormFloat64() * math.Pow(10, -3*float64(at[i])/float64(length))
		energy += gain[i] * gain[i]
	}
	out := make([]float32, len(samples))
	for i, g := range gain {
		g := float32(g / math.Sqrt(energy*directToReverberant))
		for n := at[i]; n < len(out); n++ {
			out[n] += g * samples[n-at[i]]
		}
	}
	out = lowpass(out, 4000) // rooms absorb treble
	var power float64
	for n, x := range samples {
		out[n] += x
		power += float64(out[n]) * float64(out[n])
	}
	noise := math.Sqrt(power / float64(max(1, len(out))) / speechToNoise)
	for n := range out {
		out[n] += float32(noise * r.NormFloat64())
	}
	return out
}

// lowpass is a Butterworth filter of second order.
func lowpass(samples []float32, cutoff float64) []float32 {
	k := math.Tan(math.Pi * cutoff / features.SampleRate)
	g := 1 / (1 + math.Sqrt2*k + k*k)
	return biquad(samples, [3]float64{k * k * g, 2 * k * k * g, k * k * g}, [2]float64{2 * (k*k - 1) * g, (1 - math.Sqrt2*k + k*k) * g})
}

// highpass is a Butterworth filter of second order.
func highpass(samples []float32, cutoff float64) []float32 {
	k := math.Tan(math.Pi * cutoff / features.SampleRate)
	g := 1 / (1 + math.Sqrt2*k + k*k)
	return biquad(samples, [3]float64{g, -2 * g, g}, [2]float64{2 * (k*k - 1) * g, (1 - math.Sqrt2*k + k*k) * g})
}

// biquad filters samples with the coefficients of a transfer function, b over 1, a.
func biquad(samples []float32, b [3]float64, a [2]float64) []float32 {
	out := make([]float32, len(samples))
	var s1, s2 float64
	for n, sample := range samples {
		x := float64(sample)
		y := b[0]*x + s1
		s1 = b[1]*x - a[0]*y + s2
		s2 = b[2]*x - a[1]*y
		out[n] = float32(y)
	}
	return out
}
