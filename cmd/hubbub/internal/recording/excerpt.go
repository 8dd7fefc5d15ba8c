package recording

import (
	"math"

	"hubbub/protocol"
)

// excerpt is the part of a session that a recording has, in seconds of the
// session. The recording's clock begins at its start.
type excerpt struct {
	from  float64
	until float64 // infinite while it is recorded
}

// place is a time on the recording's clock, within the part.
func (x excerpt) place(at float64) float64 {
	return protocol.Round1ms(max(min(at, x.until)-x.from, 0))
}

// event is an event as the recording has it; false = it is outside. What is not a
// turn's start or end belongs to the part in which it arrives. A start before the
// part is at its beginning: its turn may reach into it.
func (x excerpt) event(e protocol.Event) (protocol.Event, bool) {
	switch {
	case !e.IsTurn():
		return e, math.IsInf(x.until, 1)
	case e.Type == protocol.TypeSpeakerStart && e.Timestamp >= x.until:
		return e, false
	case x.from == 0 && e.Timestamp <= x.until:
		return e, true // as received
	}
	return e.Moved(x.place(e.Timestamp), e.Speaker), true
}

// turn is a turn as the recording has it; false = it is outside.
func (x excerpt) turn(t protocol.Turn) (protocol.Turn, bool) {
	t.Start, t.End = x.place(t.Start), x.place(t.End)
	return t, t.End > t.Start
}

// spans are the parts of stretches that are inside.
func (x excerpt) spans(all []protocol.Span) (inside []protocol.Span) {
	for _, s := range all {
		if s.Start, s.End = x.place(s.Start), x.place(s.End); s.End > s.Start {
			inside = append(inside, s)
		}
	}
	return inside
}
