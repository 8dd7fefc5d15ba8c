package client

import (
	"testing"

	"hubbub/protocol"
)

// A turn that a new stream continues over the cut has the match of its newest
// start before the cut, also one that was withdrawn.
func TestMatchesOverTheCut(t *testing.T) {
	for _, match := range []string{"Sam", ""} {
		m := newEventMerger()
		m.add(protocol.NewMatchEvent(1, "SPEAKER_00", "Rosa"))
		m.cutAt(2)
		m.nextStream(2, true)
		for _, e := range []protocol.Event{protocol.NewMatchEvent(1, "SPEAKER_00", "Rosa"), protocol.NewMatchEvent(1.5, "SPEAKER_00", match)} {
			if out := m.add(e); len(out) > 0 {
				t.Fatalf("before the cut: %+v", out)
			}
		}
		out := m.add(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 4, "SPEAKER_00"))
		if len(out) != 2 || out[0].Timestamp != 2 || out[0].Match != match || out[0].Unmatched != (match == "") {
			t.Errorf("%q: %+v", match, out)
		}
	}
}
