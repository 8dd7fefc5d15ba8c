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

// A turn that had just begun when the stream was lost is divided if the start with which
// the new stream continues it has another match: not before it has lasted as long as
// services report, and only if it lasts longer.
func TestMatchOfAContinuedTurn(t *testing.T) {
	for name, c := range map[string][2]string{
		"another person":       {"start 2 A Rosa; lost 2; known 2; start 1.8 A Sam; end 4 A", "start 2 A Rosa; end 2.2 A; start 2.2 A Sam; end 4 A"},
		"nobody any more":      {"start 2 A Rosa; lost 2; known 2; start 1.8 A null; end 4 A", "start 2 A Rosa; end 2.2 A; start 2.2 A null; end 4 A"},
		"recognised now":       {"start 2 A; lost 2; known 2; start 1.8 A Sam; end 4 A", "start 2 A; end 2.2 A; start 2.2 A Sam; end 4 A"},
		"the same":             {"start 2 A Sam; lost 2; known 2; start 1.8 A Sam; end 4 A", "start 2 A Sam; end 4 A"},
		"still nobody":         {"start 2 A null; lost 2; known 2; start 1.8 A null; end 4 A", "start 2 A null; end 4 A"},
		"a start without":      {"start 2 A Sam; lost 2; known 2; start 1.8 A; end 4 A", "start 2 A Sam; end 4 A"},
		"a later start":        {"start 2 A Rosa; lost 2; known 2; start 2.1 A Sam; end 4 A", "start 2 A Rosa; end 2.2 A; start 2.2 A Sam; end 4 A"},
		"one much later":       {"start 2 A Rosa; lost 2; known 2; start 2.4 A Sam; end 4 A", "start 2 A Rosa; end 2.4 A; start 2.4 A Sam; end 4 A"},
		"a turn too short":     {"start 2 A Rosa; lost 2; known 2; start 1.9 A Sam; end 2.2 A; start 3 A Sam", "start 2 A Rosa; end 2.2 A; start 3 A Sam"},
		"or shorter":           {"start 2 A Rosa; lost 2; known 2; start 1.9 A Sam; end 2.1 A; start 3 A Sam", "start 2 A Rosa; end 2.1 A; start 3 A Sam"},
		"as time passes":       {"start 2 A Rosa; lost 2; known 2; start 1.9 A Sam; decided 2.2; decided 2.3", "start 2 A Rosa; end 2.2 A; start 2.2 A Sam"},
		"in order":             {"start 2 A Rosa; lost 2; known 2; start 1.9 A Sam; start 2.1 B; end 2.3 B; end 4 A", "start 2 A Rosa; start 2.1 B; end 2.2 A; start 2.2 A Sam; end 2.3 B; end 4 A"},
		"two turns":            {"start 2 B Sam; start 2.1 A Rosa; lost 2.1; known 2.1; start 1.8 A Sam; start 1.9 B Rosa; end 4 A; end 5 B", "start 2 B Sam; start 2.1 A Rosa; end 2.2 B; start 2.2 B Rosa; end 2.3 A; start 2.3 A Sam; end 4 A; end 5 B"},
		"lost after that":      {"start 2 A Rosa; lost 2; known 2; start 1.9 A Sam; decided 3; lost 3", "start 2 A Rosa; end 2.2 A; start 2.2 A Sam; end 3 A"},
		"lost before that":     {"start 2 A Rosa; lost 2; known 2; start 1.9 A Sam; decided 2.1; lost 2.1; known 2.1; start 1.9 A Kim; end 4 A", "start 2 A Rosa; end 2.2 A; start 2.2 A Kim; end 4 A"},
		"beside one that ends": {"start 1.1 A Rosa; start 1.3 B; lost 1.3; known 1.3; start 1.2 A Sam; decided 2; end 4 A", "start 1.1 A Rosa; start 1.3 B; end 1.3 A; start 1.3 A Sam; end 1.301 B; end 4 A"},
	} {
		if got := merged(t, c[0]); got != c[1] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c[1])
		}
	}
}
