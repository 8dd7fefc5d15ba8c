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

// A turn that had just begun when the stream was lost keeps its match, whatever that of the
// start is with which the new stream continues it. The next turn has the new one.
func TestMatchOfAContinuedTurn(t *testing.T) {
	for name, c := range map[string][2]string{
		"another person":    {"start 2 A Rosa; lost 2; known 2; start 1.8 A Sam; end 4 A; start 5 A Sam", "start 2 A Rosa; end 4 A; start 5 A Sam"},
		"nobody any more":   {"start 2 A Rosa; lost 2; known 2; start 1.8 A null; end 4 A; start 5 A null", "start 2 A Rosa; end 4 A; start 5 A null"},
		"recognised now":    {"start 2 A; lost 2; known 2; start 1.8 A Sam; end 4 A; start 5 A Sam", "start 2 A; end 4 A; start 5 A Sam"},
		"the same":          {"start 2 A Sam; lost 2; known 2; start 1.8 A Sam; end 4 A", "start 2 A Sam; end 4 A"},
		"a later start":     {"start 2 A Rosa; lost 2; known 2; start 2.1 A Sam; end 4 A", "start 2 A Rosa; end 4 A"},
		"a turn that ended": {"start 1 A Rosa; lost 2; known 2; start 1.9 A Sam; end 4 A", "start 1 A Rosa; end 2 A; start 2 A Sam; end 4 A"},
	} {
		if got := merged(t, c[0]); got != c[1] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c[1])
		}
	}
}
