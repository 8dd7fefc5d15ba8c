// Package engine turns audio into speaker turns, live.
//
// Samples go in (16 kHz, mono, float32, any number at a time), starts and ends
// of turns come out, each at a fixed latency behind the newest sample. What
// has come out is never taken back. The engine knows no network, no file and
// no clock but the audio's own: the same samples give the same events, however
// they are cut into calls and however fast they arrive.
package engine

import "time"

// SampleRate is the only rate that the engine takes, in samples per second.
const SampleRate = 16000

// MaxSpeakers is the largest number of labels in one session.
const MaxSpeakers = 8

// Config is what a stream may choose. The zero value means the defaults.
type Config struct {
	// Latency is how far behind the newest sample turns are committed,
	// 0.5 s to 5 s. Zero means DefaultLatency.
	Latency time.Duration
	// MaxSpeakers is how many labels are given at most, 1 to 8. Zero means 8.
	MaxSpeakers int
}

// DefaultLatency is the latency of a Config that names none.
const DefaultLatency = time.Second

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
