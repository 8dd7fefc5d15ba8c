package client

import (
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// A text has the times of its turn in the session, also where that begins elsewhere
// than in the new stream.
func TestTextOfATurnAcrossTheCut(t *testing.T) {
	for name, c := range map[string]struct {
		first, next []protocol.Event
		said, want  protocol.Turn
	}{
		"clipped": {
			[]protocol.Event{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 1, "A")},
			[]protocol.Event{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 2.4, "A"), protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 4, "A")},
			protocol.Turn{Speaker: "A", Start: 2.4, End: 4, Text: "hello"}, protocol.Turn{Speaker: "A", Start: 3, End: 4, Text: "hello"}},
		"continued": {
			[]protocol.Event{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 2.9, "A")},
			[]protocol.Event{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 3.1, "A"), protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 4, "A")},
			protocol.Turn{Speaker: "A", Start: 3.1, End: 4, Text: "hello"}, protocol.Turn{Speaker: "A", Start: 2.9, End: 4, Text: "hello"}},
		"continued with another match": {
			[]protocol.Event{protocol.NewMatchEvent(2.9, "A", "Rosa")},
			[]protocol.Event{protocol.NewMatchEvent(2.8, "A", "Sam"), protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 4, "A")},
			protocol.Turn{Speaker: "A", Start: 2.8, End: 4, Text: "hello"}, protocol.Turn{Speaker: "A", Start: 2.9, End: 4, Text: "hello"}},
		"after the cut": {nil,
			[]protocol.Event{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 3.4, "A"), protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 4, "A")},
			protocol.Turn{Speaker: "A", Start: 3.4, End: 4, Text: "hello"}, protocol.Turn{Speaker: "A", Start: 3.4, End: 4, Text: "hello"}},
	} {
		m := newEventMerger()
		timeline := protocol.NewTimeline()
		apply := func(events []protocol.Event) {
			for _, e := range events {
				timeline.Apply(e)
			}
		}
		for _, e := range c.first {
			apply(m.add(e))
		}
		cut, ends := m.cutAt(3)
		apply(ends)
		apply(m.nextStream(cut, true))
		for _, e := range c.next {
			apply(m.add(e))
		}
		out := m.add(protocol.NewTextEvent(c.said))
		apply(out)
		if len(out) != 1 || out[0].Transcript != c.want {
			t.Errorf("%s: %+v, want %+v", name, out, c.want)
		}
		testkit.Equal(t, timeline.Snapshot().Texts, 1, name, "turns with the text of", timeline.Snapshot().Turns())
	}
}
