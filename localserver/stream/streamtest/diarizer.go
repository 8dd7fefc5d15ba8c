// Package streamtest has diarizers that do what a test says.
package streamtest

import (
	"errors"
	"strings"
	"time"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
)

// Diarizer is a stream.Diarizer made of functions. nil = no events.
type Diarizer struct {
	// OnPush gets the number of chunks so far, from 1 on, and the samples of the
	// newest.
	OnPush func(n int, samples []float32) []engine.Event
	// OnFlush gets the number of all chunks.
	OnFlush func(n int) []engine.Event
	// State is what a snapshot has.
	State string

	chunks int
}

// Push is that of stream.Diarizer.
func (d *Diarizer) Push(samples []float32, out []engine.Event) []engine.Event {
	d.chunks++
	if d.OnPush == nil {
		return out
	}
	return append(out, d.OnPush(d.chunks, samples)...)
}

// Flush is that of stream.Diarizer.
func (d *Diarizer) Flush(out []engine.Event) []engine.Event {
	if d.OnFlush == nil {
		return out
	}
	return append(out, d.OnFlush(d.chunks)...)
}

// OneTurn starts speaker 0 with the first chunk and leaves the turn open.
func OneTurn() *Diarizer {
	return &Diarizer{OnPush: func(n int, _ []float32) []engine.Event {
		if n == 1 {
			return []engine.Event{{Kind: engine.Start, At: 20 * time.Millisecond}}
		}
		return nil
	}}
}

// ManyTurns starts a turn of speaker 0 with the first chunk, and then ends or
// starts one with every chunk.
func ManyTurns() *Diarizer {
	return &Diarizer{OnPush: func(n int, _ []float32) []engine.Event {
		kind := engine.Start
		if n%2 == 0 {
			kind = engine.End
		}
		return []engine.Event{{Kind: kind, At: max(time.Duration(n-1)*protocol.ChunkDuration, 20*time.Millisecond)}}
	}}
}

// Enrol is that of stream.Diarizer. It recognises nobody.
func (d *Diarizer) Enrol([]voiceprint.Person, voiceprint.Matching) {}

const snapshotPrefix = "state:"

// AppendSnapshot is that of stream.Diarizer.
func (d *Diarizer) AppendSnapshot(out []byte) []byte { return append(out, snapshotPrefix+d.State...) }

// RestoreSnapshot is that of stream.Diarizer.
func (d *Diarizer) RestoreSnapshot(snapshot []byte) error {
	state, ok := strings.CutPrefix(string(snapshot), snapshotPrefix)
	if !ok {
		return errors.New("not a snapshot")
	}
	d.State = state
	return nil
}
