package stream

import (
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// Resolution is that of timestamps on the wire.
const Resolution = time.Millisecond

// validator turns what a diarizer returns into events that the contract
// allows, whatever the diarizer returns:
//
//   - timestamps are whole milliseconds, in order, and never later than the
//     audio received;
//   - every start has exactly one end, later by at least a millisecond;
//   - no label has two open turns;
//   - speakers get their labels in order of first speech.
//
// Events that obey these rules pass unchanged except for rounding; others are
// corrected and counted.
type validator struct {
	last        time.Duration // timestamp of the newest event
	labels      int           // labels in use
	speakers    [engine.MaxSpeakers]speaker
	corrections corrections
}

// speaker is one speaker of the engine.
type speaker struct {
	Label
	open    bool
	since   time.Duration // start of the open turn
	pending bool          // a start that has no room yet for an end after it
	from    time.Duration // wanted start of the pending turn
	match   string        // of the newest start
}

// corrections counts what the validator has corrected.
type corrections struct {
	Moved   int64 // timestamps that were out of order, too late or too close
	Dropped int64 // starts and ends that had no counterpart
}

// validate appends to out the events that may be sent. received is the length
// of the audio that the diarizer was given so far.
func (v *validator) validate(in []engine.Event, received time.Duration, out []protocol.Event) []protocol.Event {
	for i := range v.speakers {
		out = v.start(i, received, out)
	}
	for _, e := range in {
		if e.Speaker < 0 || e.Speaker >= len(v.speakers) {
			v.corrections.Dropped++
			continue
		}
		s := &v.speakers[e.Speaker]
		at := e.At.Round(Resolution)
		switch {
		case e.Kind == engine.Start && !s.open && !s.pending:
			s.pending, s.from, s.match = true, at, e.Match
			out = v.start(e.Speaker, received, out)
		case e.Kind == engine.End && s.open:
			out = v.end(e.Speaker, at, received, out)
		case e.Kind == engine.End && s.pending: // a turn of no length
			s.pending = false
			v.corrections.Dropped += 2
		default:
			v.corrections.Dropped++
		}
	}
	return out
}

// start emits a pending start once a millisecond of audio follows it, so that
// there is room for its end.
func (v *validator) start(i int, received time.Duration, out []protocol.Event) []protocol.Event {
	s := &v.speakers[i]
	at := max(s.from, v.last)
	if !s.pending || at > received-Resolution {
		return out
	}
	if s.Number == 0 {
		v.labels++
		s.Number = v.labels
	}
	s.pending, s.open, s.since = false, true, at
	return v.emit(protocol.TypeSpeakerStart, s, at, s.from, out)
}

// end ends an open turn.
func (v *validator) end(i int, wanted, received time.Duration, out []protocol.Event) []protocol.Event {
	s := &v.speakers[i]
	s.open = false
	// since+1 ms and last are both within received, and so is the result.
	at := max(min(wanted, received), s.since+Resolution, v.last)
	return v.emit(protocol.TypeSpeakerEnd, s, at, wanted, out)
}

// emit appends one event.
func (v *validator) emit(typ string, s *speaker, at, wanted time.Duration, out []protocol.Event) []protocol.Event {
	if at != wanted {
		v.corrections.Moved++
	}
	v.last = at
	label := protocol.SpeakerLabel(s.Number - 1)
	if s.Matched = s.Matched || s.match != ""; s.Matched && typ == protocol.TypeSpeakerStart {
		return append(out, protocol.NewMatchEvent(at.Seconds(), label, s.match))
	}
	return append(out, protocol.NewSpeakerEvent(typ, at.Seconds(), label))
}

// finish ends the turns that are still open, at the end of the audio.
func (v *validator) finish(received time.Duration, out []protocol.Event) []protocol.Event {
	for i := range v.speakers {
		s := &v.speakers[i]
		if s.pending {
			v.corrections.Dropped++
		}
		if s.open {
			out = v.end(i, received, received, out)
		}
	}
	return out
}
