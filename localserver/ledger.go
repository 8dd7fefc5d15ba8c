package localserver

import (
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// resolution is that of timestamps on the wire.
const resolution = time.Millisecond

// ledger stands between the engine and the wire and lets nothing pass that the
// contract forbids, whatever the engine says:
//
//   - timestamps are whole milliseconds, in order, and never later than the
//     audio received;
//   - every start has exactly one end, later by a millisecond at least;
//   - one label never has two open turns;
//   - labels are given in order of first speech.
//
// An engine that keeps its word passes unchanged, but for the rounding. What
// had to be put right is counted.
type ledger struct {
	last   time.Duration // of the newest event that was let out
	labels int
	voices [engine.MaxSpeakers]voice
	fixed  Corrections
}

// voice is one speaker of the engine.
type voice struct {
	label   int // counted from 1; 0 = none yet
	open    bool
	since   time.Duration // of an open turn
	waiting bool          // a start that has no room yet for an end behind it
	from    time.Duration // of a waiting one
}

// Corrections counts what had to be put right between the engine and the wire.
type Corrections struct {
	Moved   int64 // timestamps that were out of order, too late or too close
	Dropped int64 // starts and ends that had no meaning
	Ended   int64 // turns that the engine had left open at the end
}

// admit appends to out what may leave of the engine's events, when received is
// the length of the audio that the engine was given so far.
func (l *ledger) admit(in []engine.Event, received time.Duration, out []protocol.Event) []protocol.Event {
	for v := range l.voices {
		out = l.start(v, received, out)
	}
	for _, e := range in {
		if e.Speaker < 0 || e.Speaker >= len(l.voices) {
			l.fixed.Dropped++
			continue
		}
		v := &l.voices[e.Speaker]
		at := e.At.Round(resolution)
		switch {
		case e.Kind == engine.Start && !v.open && !v.waiting:
			v.waiting, v.from = true, at
			out = l.start(e.Speaker, received, out)
		case e.Kind == engine.End && v.open:
			out = l.end(e.Speaker, at, received, out)
		case e.Kind == engine.End && v.waiting: // a turn of no length
			v.waiting = false
			l.fixed.Dropped += 2
		default:
			l.fixed.Dropped++
		}
	}
	return out
}

// start lets a waiting start out if a millisecond of audio follows it: an end
// must always be possible.
func (l *ledger) start(i int, received time.Duration, out []protocol.Event) []protocol.Event {
	v := &l.voices[i]
	at := max(v.from, l.last)
	if !v.waiting || at > received-resolution {
		return out
	}
	if v.label == 0 {
		l.labels++
		v.label = l.labels
	}
	v.waiting, v.open, v.since = false, true, at
	return l.let(protocol.TypeSpeakerStart, v, at, v.from, out)
}

// end ends an open turn.
func (l *ledger) end(i int, wanted, received time.Duration, out []protocol.Event) []protocol.Event {
	v := &l.voices[i]
	v.open = false
	// since+1 ms and last are both within received, so all of this is legal.
	at := max(min(wanted, received), v.since+resolution, l.last)
	return l.let(protocol.TypeSpeakerEnd, v, at, wanted, out)
}

// let appends one event.
func (l *ledger) let(typ string, v *voice, at, wanted time.Duration, out []protocol.Event) []protocol.Event {
	if at != wanted {
		l.fixed.Moved++
	}
	l.last = at
	return append(out, protocol.NewSpeakerEvent(typ, at.Seconds(), protocol.SpeakerLabel(v.label-1)))
}

// finish ends the turns that are still open, at the end of the audio.
func (l *ledger) finish(received time.Duration, out []protocol.Event) []protocol.Event {
	for i := range l.voices {
		v := &l.voices[i]
		if v.waiting {
			v.waiting = false
			l.fixed.Dropped++
		}
		if v.open {
			l.fixed.Ended++
			out = l.end(i, received, received, out)
		}
	}
	return out
}
