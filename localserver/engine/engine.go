// Package engine diarizes one stream of audio: samples go in, starts and ends of
// speaker turns come out.
//
//	samples    16 kHz, mono, float32
//	  │ features       64 log-mel bands, 100 frames a second
//	  │ embedding      trunk of the embedding network, 768 values for 40 ms
//	  │ segmentation   activity of three local speakers, 20 ms
//	  │ inference      every 0.2 s a window of 5 s: local speakers, segments, embeddings
//	  │ clustering     speakers of the session, their scores in each frame
//	  │ decoder        which of them talk in each frame
//	  ▼ turns          frames committed at a fixed latency, short turns and pauses removed
//	events     start and end of a turn
//
// The activity of a frame may change while the frame is younger than the latency.
// Then it is committed, and its events are never retracted. The engine has no
// clock but the audio's: the same samples give the same events, however they are
// divided into calls and however fast they arrive.
package engine

import (
	"time"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
	"hubbub/localserver/engine/features"
	"hubbub/localserver/engine/inference"
	"hubbub/localserver/engine/voiceprint"
)

// SampleRate is the only sample rate that the engine takes, in Hz.
const SampleRate = features.SampleRate

// MaxSpeakers is the largest number of speakers in one session.
const MaxSpeakers = clustering.MaxSpeakers

const (
	// frameSamples is the length of a frame, the unit of decisions: 20 ms.
	frameSamples = 320
	// chunkSamples is how many samples the engine processes at once: the
	// protocol's chunk of 100 ms. It is fixed, because the events must not depend
	// on how the samples are divided into calls.
	chunkSamples = 1600
	// hopSamples is the distance of two windows (0.2 s). 0.1 s is no better,
	// 0.5 s costs about a point of DER.
	hopSamples = 2 * chunkSamples
)

// Kind tells a turn's start from its end.
type Kind uint8

// The two kinds of Event.
const (
	Start Kind = iota + 1
	End
)

// Event is the committed start or end of a turn.
//
// Events come in order of At. Every Start of a speaker is followed by exactly one
// End with a later At; a speaker never has two open turns. At is never later than
// the audio that has been pushed.
type Event struct {
	Kind Kind
	// At is the position in the audio, counted from the first sample.
	At time.Duration
	// Speaker is a number below MaxSpeakers. It stands for the same person in all
	// events; the order of numbers means nothing.
	Speaker int
	// Match is the label of the enrolled person whom the speaker of a Start was
	// recognised as; "" = nobody. It may change from one Start of a speaker to the
	// next. When it changes during a turn, that turn ends and another one begins.
	Match string
}

// Engine diarizes one stream. One goroutine may use it at a time.
type Engine struct {
	latency int // samples
	source  activitySource
	turns   turns

	pending   [chunkSamples]float32
	filled    int // samples in pending
	received  int // samples that source has
	committed int // frames
	flushed   bool
	matched   [MaxSpeakers]string // the Match of each speaker's last Start
}

// activitySource decides which speakers are active in which frame: a pipeline,
// or a script in tests.
type activitySource interface {
	// push takes the next samples, at most chunkSamples. Fewer than chunkSamples, or
	// none, end the input.
	push(samples []float32)
	// activity returns the active speakers of each frame from frame first to
	// the newest whole frame: activity(n)[0] is frame n. Frames may change with
	// the next push, which also invalidates the slice. Frames before first are
	// not asked for again.
	activity(first int) []speakerSet
	// enrol gives the people whom match knows.
	enrol(people []voiceprint.Person, m voiceprint.Matching)
	// match is the enrolled person whom a speaker was recognised as, or "".
	match(speaker int) string
	// appendSnapshot and restoreSnapshot write and read what is known of the
	// speakers.
	appendSnapshot(out []byte) []byte
	restoreSnapshot(snapshot []byte, matches [MaxSpeakers]string) error
}

// New returns an engine for one stream. An error names the field of c that is out
// of range.
func New(c Config) (*Engine, error) {
	return NewWith(c, clustering.Default(), inference.New(hopSamples))
}

// NewWith is New with other parameters and another source of windows, for
// tuning: for instance the stored windows of an earlier run.
func NewWith(c Config, p clustering.Params, windows WindowSource) (*Engine, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return newEngine(c, &pipeline{windows: windows, clusterer: clustering.New(p, c.MaxSpeakers), decoder: decoder.Live().New()}), nil
}

// Enrol makes the engine recognise people where they talk: the events of their
// turns have a Match. It must come before RestoreSnapshot and the first Push.
func (e *Engine) Enrol(people []voiceprint.Person, m voiceprint.Matching) {
	e.source.enrol(people, m)
}

func newEngine(c Config, s activitySource) *Engine {
	return &Engine{
		latency: int(c.Latency * SampleRate / time.Second),
		source:  s,
	}
}

// Push takes the next samples of the stream and appends the events that they
// commit to out. Samples that are not finite count as silence. After Flush it
// does nothing.
//
// Events are committed as late as the latency allows on a grid of 100 ms: pushed
// in chunks of 1,600 samples, no event is further behind the newest sample than
// Config.Latency; in other sizes, at most one chunk and one call further.
func (e *Engine) Push(samples []float32, out []Event) []Event {
	if e.flushed {
		return out
	}
	for len(samples) > 0 {
		n := min(len(samples), chunkSamples-e.filled)
		copy(e.pending[e.filled:], samples[:n])
		samples = samples[n:]
		if e.filled += n; e.filled == chunkSamples {
			out = e.processChunk(out)
		}
	}
	return out
}

// Flush ends the input: it commits all remaining frames, ends the open turns and
// appends those events to out. The engine takes no samples afterwards.
func (e *Engine) Flush(out []Event) []Event {
	if e.flushed {
		return out
	}
	e.flushed = true
	e.process()
	out = e.commit(e.received/frameSamples, out)
	return e.turns.finish(out)
}

// processChunk processes the pending samples and commits every frame that would be older
// than the latency after the next chunk.
func (e *Engine) processChunk(out []Event) []Event {
	e.process()
	due := e.received + chunkSamples - e.latency
	return e.commit((due+frameSamples-1)/frameSamples, out)
}

func (e *Engine) process() {
	e.source.push(e.pending[:e.filled])
	e.received += e.filled
	e.filled = 0
}

// commit commits the frames before end.
func (e *Engine) commit(end int, out []Event) []Event {
	if e.committed >= end {
		return out
	}
	activity := e.source.activity(e.committed)
	for ; e.committed < end; e.committed++ {
		n := len(out)
		out = e.turns.commit(activity, out)
		for i := n; i < len(out); i++ {
			if out[i].Kind == Start {
				k := out[i].Speaker
				out[i].Match = e.source.match(k)
				e.matched[k] = out[i].Match
			}
		}
		out = e.divideOnNewMatch(out)
		activity = activity[1:]
	}
	return out
}

// divideOnNewMatch divides the open turns of speakers whose match changed during them: only
// a Start has a Match.
func (e *Engine) divideOnNewMatch(out []Event) []Event {
	for k := range MaxSpeakers {
		if match := e.source.match(k); match != e.matched[k] && e.turns.canDivide(k) {
			out = e.turns.divide(k, out)
			out[len(out)-1].Match, e.matched[k] = match, match
		}
	}
	return out
}
