// Package engine turns audio into speaker turns, live.
//
// Samples go in (16 kHz, mono, float32, any number at a time), starts and ends
// of turns come out, each at a fixed latency behind the newest sample. What
// has come out is never taken back. The engine knows no network, no file and
// no clock but the audio's own: the same samples give the same events, however
// they are cut into calls and however fast they arrive.
//
// Inside, a listener holds an opinion on who talks in each frame of 20 ms and
// may change it while the frame is younger than the latency; turns reads that
// opinion frame by frame at the moment it has to commit, and makes events.
package engine

import (
	"math"
	"time"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/hearing"
)

// SampleRate is the only rate that the engine takes, in samples per second.
const SampleRate = 16000

// MaxSpeakers is the largest number of labels in one session.
const MaxSpeakers = 8

// Kind tells a turn's start from its end.
type Kind uint8

// The two kinds of Event.
const (
	Start Kind = iota + 1
	End
)

// Event is one committed edge of a turn.
//
// Events come in order of At. Every Start of a speaker is followed by exactly
// one End with a later At; a speaker never has two open turns. At is never
// later than the audio that has been pushed.
type Event struct {
	Kind Kind
	// At is the position in the audio, counted from the first sample.
	At time.Duration
	// Speaker counts from 0 in order of first speech, below MaxSpeakers.
	Speaker int
}

const (
	// frameSamples is the grid on which speech is decided: 20 ms.
	frameSamples = 320
	// stepSamples is how many samples the engine takes at once. It is the
	// protocol's chunk, and fixed, because results must not depend on how the
	// samples were cut into calls.
	stepSamples = 1600
	// loudest bounds a sample: the scale of 16-bit integers, far above any
	// sane float, so that no square or sum of squares can overflow.
	loudest = 32768
)

// listener is the heart of the engine: it decides who talks when. It is asked
// after every step, and its answers about a frame may change from one step to
// the next; only what is committed is final.
type listener interface {
	// hear takes the next samples, at most stepSamples, all of them finite.
	// Fewer than stepSamples means that the input is over.
	hear(samples []float32)
	// opinion returns who is thought to talk in the frames from frame on, up
	// to the newest whole frame that was heard: opinion(n)[0] is frame n. It
	// is valid until the next call of hear. No frame before the last one
	// asked for is asked for again.
	opinion(frame int) []voices
}

// Engine diarizes one stream. It is not safe for use by more than one
// goroutine at a time.
type Engine struct {
	latency  int // in samples
	listener listener
	turns    turns

	pending [stepSamples]float32
	filled  int // samples in pending
	heard   int // samples that the listener has
	next    int // the next frame to commit
	flushed bool
}

// New returns an engine for one stream. An error names the field of c that is
// out of range.
func New(c Config) (*Engine, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	w, err := hearing.New(hopSamples)
	if err != nil {
		return nil, err
	}
	return NewFrom(c, clustering.Default(), w)
}

// NewFrom is New with other thresholds and another source of windows, such as
// the windows of an earlier run: for tuning.
func NewFrom(c Config, p clustering.Params, w Windower) (*Engine, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return newEngine(c, newNeural(p, c.MaxSpeakers, w)), nil
}

func newEngine(c Config, l listener) *Engine {
	return &Engine{
		latency:  int(c.Latency * SampleRate / time.Second),
		listener: l,
		turns:    newTurns(minOnFrames, minOffFrames),
	}
}

// Push takes the next samples of the stream and appends the events that they
// commit to out. Samples that are not finite count as silence. After Flush it
// does nothing.
//
// An event is committed as late as the latency allows on a grid of 100 ms: fed
// in chunks of 1,600 samples, no event is further behind the newest sample
// than Config.Latency; cut otherwise, at most one step and one call further.
func (e *Engine) Push(samples []float32, out []Event) []Event {
	if e.flushed {
		return out
	}
	for len(samples) > 0 {
		n := min(len(samples), stepSamples-e.filled)
		for i, x := range samples[:n] {
			e.pending[e.filled+i] = sane(x)
		}
		samples = samples[n:]
		if e.filled += n; e.filled == stepSamples {
			out = e.step(out)
		}
	}
	return out
}

// Flush says that the input is over: it decides everything that is left, ends
// the open turns and appends those events to out. The engine takes no samples
// afterwards.
func (e *Engine) Flush(out []Event) []Event {
	if e.flushed {
		return out
	}
	e.flushed = true
	if e.filled > 0 {
		e.listener.hear(e.pending[:e.filled])
		e.heard += e.filled
		e.filled = 0
	}
	out = e.commit(e.heard/frameSamples, out)
	return e.turns.finish(out)
}

func (e *Engine) step(out []Event) []Event {
	e.listener.hear(e.pending[:])
	e.heard += stepSamples
	e.filled = 0
	// Every frame that would be older than the latency by the next step.
	due := e.heard + stepSamples - e.latency
	if due <= 0 {
		return out
	}
	return e.commit((due+frameSamples-1)/frameSamples, out)
}

// commit decides the frames before end.
func (e *Engine) commit(end int, out []Event) []Event {
	if e.next >= end {
		return out
	}
	ahead := e.listener.opinion(e.next)
	for ; e.next < end; e.next++ {
		out = e.turns.decide(ahead, out)
		ahead = ahead[1:]
	}
	return out
}

func sane(x float32) float32 {
	switch {
	case x != x:
		return 0
	case x > loudest:
		if math.IsInf(float64(x), 1) {
			return 0
		}
		return loudest
	case x < -loudest:
		if math.IsInf(float64(x), -1) {
			return 0
		}
		return -loudest
	}
	return x
}
