// Package features computes the frames that the networks see: log-mel energies
// relative to their running mean, independent of the gain of the recording.
//
// 16 kHz mono; frame t covers samples [160 t, 160 t + 400), so 100 frames a
// second of 25 ms each. A frame is the power spectrum (periodic Hann, 512
// points) through 64 triangles on the mel scale, ln(p + 1e-6 e^level), minus
// the running mean of each band. The level follows the loud frames of speech,
// so everything more than 60 dB below them is constant, whatever the gain. The
// mean begins at a stored prior, relative to the level, and is one of speech:
// silence counts for little, and it forgets so slowly that it is the mean of a
// conversation, not of a single speaker. A frame is computed once, in float64,
// and depends on nothing but the samples up to its end: the same samples give
// the same frames, however they are divided into calls.
package features

import (
	"math"

	"hubbub/localserver/engine/weights"
)

// The front end's numbers; the networks are trained for these and no others.
const (
	SampleRate = 16000
	Window     = 400 // samples of a frame
	Hop        = 160 // samples from one frame to the next
	Bands      = 64  // values of a frame

	priorCount = 100    // frames that the prior mean weighs
	maxCount   = 12_000 // frames over which the mean forgets: 2 min of speech
	// A frame counts fully for the mean when its mean over the bands exceeds the
	// noise floor by speechMargin, others by silenceWeight, and frames without a
	// signal not at all. The floor falls by a part of the way to a lower frame,
	// and rises slowly.
	speechMargin  = 1
	silenceWeight = 0.005
	floorFall     = 0.2
	floorRise     = 0.002
	// The level is a natural logarithm of mean power. It begins levelStart above
	// the first frame with a signal, since a stream mostly begins with its
	// background. While the prior is more than startShare of the mean, which is for
	// 0.1 s of speech, it begins again at a frame that would begin it more than
	// startMargin lower: a click or a tone at the start would otherwise hide the
	// speech of a minute. It moves by levelAttack of the way to a louder frame, and
	// by levelDecay of it to a quieter frame of speech.
	levelStart  = 4
	startShare  = 0.9
	startMargin = 2
	levelAttack = 0.1
	levelDecay  = 0.0005
	// powerFloor is the power, relative to the level, below which nothing is
	// distinguished; a frame up to signalMargin above its logarithm has no signal.
	powerFloor   = 1e-6
	logFloor     = -13.815510557964274 // ln(powerFloor)
	signalMargin = 0.5
	// maxSample bounds a sample: 24 dB above full scale. Larger values are no
	// sound, and an overflow would stay in the running mean.
	maxSample = 16
)

// FrontEnd holds the tables; it does not change and may be shared by streams.
type FrontEnd struct {
	window [Window]float64
	prior  [Bands]float64
	bands  [Bands]band
}

// band is one triangle: its first bin and the weights from there on.
type band struct {
	from    int
	weights []float64
}

// New takes the tensors feat.window, feat.mel and feat.prior.
func New(f *weights.File) *FrontEnd {
	e := &FrontEnd{}
	for i, v := range f.Tensor("feat.window", Window) {
		e.window[i] = float64(v)
	}
	for i, v := range f.Tensor("feat.prior", Bands) {
		e.prior[i] = float64(v)
	}
	mel := f.Tensor("feat.mel", half+1, Bands)
	for b := range e.bands {
		from, to := half+1, 0
		for k := range half + 1 {
			if mel[k*Bands+b] != 0 {
				from, to = min(from, k), k+1
			}
		}
		from = min(from, to)
		w := make([]float64, 0, to-from)
		for k := from; k < to; k++ {
			w = append(w, float64(mel[k*Bands+b]))
		}
		e.bands[b] = band{from, w}
	}
	return e
}

// Stream is the front end of one stream; one goroutine may use it.
type Stream struct {
	e       *FrontEnd
	pending []float32 // samples that the next frame begins with
	channel Channel
	fft     fft
	frame   [fftSize]float64
	power   [half + 1]float64
	energy  [Bands]float64
}

// NewStream begins a stream.
func (e *FrontEnd) NewStream() *Stream {
	return &Stream{e: e, pending: make([]float32, 0, Window), channel: newChannel()}
}

// Push takes any number of samples and appends the frames that they complete to
// dst, Bands values each. Samples that are not finite count as silence. Those beyond 24 dB
// above full scale are limited to it.
func (s *Stream) Push(samples, dst []float32) []float32 {
	for len(samples) > 0 {
		n := min(Window-len(s.pending), len(samples))
		for _, v := range samples[:n] {
			s.pending = append(s.pending, clampSample(v))
		}
		samples = samples[n:]
		if len(s.pending) == Window {
			dst = s.next(dst)
			s.pending = s.pending[:copy(s.pending, s.pending[Hop:])]
		}
	}
	return dst
}

// clampSample replaces what is not finite by silence and limits v to maxSample.
func clampSample(v float32) float32 {
	if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return min(max(v, -maxSample), maxSample)
}

// next computes the frame of the pending samples.
func (s *Stream) next(dst []float32) []float32 {
	for i, v := range s.pending {
		s.frame[i] = float64(v) * s.e.window[i]
	}
	s.fft.power(&s.frame, &s.power)
	total := 0.0
	for b := range s.e.bands {
		t := &s.e.bands[b]
		sum := 0.0
		for i, p := range s.power[t.from:][:len(t.weights)] {
			sum += p * t.weights[i]
		}
		s.energy[b] = sum
		total += sum / Bands
	}
	c := &s.channel
	c.follow(total)
	floor, level := powerFloor*math.Exp(c.Level), 0.0
	for b, p := range s.energy {
		s.energy[b] = math.Log(p + floor)
		level += s.energy[b] / Bands
	}
	if c.Signal {
		c.weigh(level)
	}
	step := c.Weight / c.Count
	c.Share *= 1 - step
	for b, v := range s.energy {
		c.Mean[b] += (v - c.Mean[b]) * step
		dst = append(dst, float32(v-c.Mean[b]-c.Share*(s.e.prior[b]+c.Level)))
	}
	return dst
}
