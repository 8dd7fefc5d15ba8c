// Package features turns samples into the frames that the networks see:
// log-mel energies with their running mean removed.
//
// 16 kHz mono; frame t covers samples [160 t, 160 t + 400), so 100 frames a
// second of 25 ms each. A frame is the power spectrum (periodic Hann, 512
// points) through 64 triangles on the mel scale, ln(x + 1e-6), minus the
// running mean of each band. That begins at a stored prior and is one of
// speech: silence counts for little, and it forgets so slowly that it is the
// mean of a conversation, not of whoever talks. A frame is computed once, in
// float64, and depends on nothing but the samples up to its end: the same
// samples give the same frames, however they are cut.
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
	// A frame counts for the mean when its level, the mean of its bands, is
	// more than above over the floor, others by quiet, and frames up to
	// noSignal not at all: the mean is that of speech. The floor falls by a
	// part of the way to a lower level, and rises slowly.
	above    = 1
	quiet    = 0.005
	noSignal = -13.815510557964274 + 0.5 // ln(tiny) and a little
	fall     = 0.2
	rise     = 0.002
	tiny     = 1e-6
	// loudest bounds a sample: 24 dB above full scale. Beyond lies no sound,
	// but an overflow that would stay in the running mean for ever.
	loudest = 16
)

// Frames is the number of frames that n samples fill.
func Frames(n int) int {
	if n < Window {
		return 0
	}
	return 1 + (n-Window)/Hop
}

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
func New(f *weights.File) (*FrontEnd, error) {
	r := weights.Reader{File: f}
	e := &FrontEnd{}
	for i, v := range r.Tensor("feat.window", Window) {
		e.window[i] = float64(v)
	}
	for i, v := range r.Tensor("feat.prior", Bands) {
		e.prior[i] = float64(v)
	}
	mel := r.Tensor("feat.mel", half+1, Bands)
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
	return e, r.Err
}

// Stream is the front end of one stream; one goroutine may use it.
type Stream struct {
	e       *FrontEnd
	pending []float32 // samples that the next frame begins with
	frames  int
	channel Channel
	fft     fft
	frame   [fftSize]float64
	power   [half + 1]float64
	energy  [Bands]float64
}

// NewStream begins a stream.
func (e *FrontEnd) NewStream() *Stream {
	return &Stream{e: e, pending: make([]float32, 0, Window), channel: Channel{Mean: e.prior, Count: priorCount}}
}

// Len is the number of frames so far.
func (s *Stream) Len() int { return s.frames }

// Bytes is the memory of the stream.
func (s *Stream) Bytes() int {
	return 4*cap(s.pending) + 8*(4*half+fftSize+half+1+2*Bands)
}

// Push takes any number of samples and appends the frames that they complete to
// dst, Bands values each. Samples that are no number count as silence, and such
// as are louder than 24 dB above full scale are limited to that.
func (s *Stream) Push(samples, dst []float32) []float32 {
	for len(samples) > 0 {
		n := min(Window-len(s.pending), len(samples))
		for _, v := range samples[:n] {
			s.pending = append(s.pending, sane(v))
		}
		samples = samples[n:]
		if len(s.pending) == Window {
			dst = s.next(dst)
			s.pending = s.pending[:copy(s.pending, s.pending[Hop:])]
		}
	}
	return dst
}

func sane(v float32) float32 {
	switch {
	case v != v:
		return 0
	case v > loudest:
		return loudest
	case v < -loudest:
		return -loudest
	}
	return v
}

// next computes the frame of the pending samples.
func (s *Stream) next(dst []float32) []float32 {
	for i, v := range s.pending {
		s.frame[i] = float64(v) * s.e.window[i]
	}
	s.fft.power(&s.frame, &s.power)
	s.frames++
	level := 0.0
	for b := range s.e.bands {
		t := &s.e.bands[b]
		sum := 0.0
		for i, p := range s.power[t.from:][:len(t.weights)] {
			sum += p * t.weights[i]
		}
		s.energy[b] = math.Log(sum + tiny)
		level += s.energy[b] / Bands
	}
	weight := s.weightOf(level)
	s.channel.Count = min(s.channel.Count+weight, maxCount)
	for b, v := range s.energy {
		s.channel.Mean[b] += (v - s.channel.Mean[b]) * weight / s.channel.Count
		dst = append(dst, float32(v-s.channel.Mean[b]))
	}
	return dst
}

// weightOf is how much a frame of this level counts for the running mean.
func (s *Stream) weightOf(level float64) float64 {
	switch {
	case !s.channel.Known:
		s.channel.Floor, s.channel.Known = level+rise, true
	case level < s.channel.Floor:
		s.channel.Floor += fall * (level - s.channel.Floor)
	default:
		s.channel.Floor += rise
	}
	switch {
	case level < noSignal:
		return 0
	case level > s.channel.Floor+above:
		return 1
	}
	return quiet
}
