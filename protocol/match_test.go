package protocol

import (
	"testing"

	"hubbub/protocol/testkit"
)

// A recognised name stands for the label, also in turns from before the match; a
// typed name comes first.
func TestMatchedNames(t *testing.T) {
	line := NewTimeline()
	for _, e := range []Event{
		NewSpeakerEvent(TypeSpeakerStart, 1, "SPEAKER_00"), NewSpeakerEvent(TypeSpeakerEnd, 2, "SPEAKER_00"),
		NewMatchEvent(3, "SPEAKER_00", "Sam"),
	} {
		parsed, err := ParseEvent(e.Raw)
		if err != nil || parsed.Match != e.Match {
			t.Fatalf("%s: %+v, %v", e.Raw, parsed, err)
		}
		line.Apply(parsed)
	}
	for at := 4.0; at < 8; at += 2 { // the second start says nothing of a match
		if got := line.Apply(NewSpeakerEvent(TypeSpeakerEnd, at, "SPEAKER_00")); len(got) != 1 || got[0].Match != "Sam" {
			t.Errorf("finished: %+v", got)
		}
		line.Apply(NewSpeakerEvent(TypeSpeakerStart, at+1, "SPEAKER_00"))
	}
	for _, turn := range line.Snapshot().Turns() {
		if turn.Match != "Sam" || turn.Speaker != "SPEAKER_00" {
			t.Errorf("%+v", turn)
		}
	}
	var annotations Annotations
	if s := annotations.Speakers(line.Snapshot()); len(s) != 1 || s[0].Speaker != "Sam" || s[0].Label != "SPEAKER_00" {
		t.Errorf("%+v", s)
	}
	annotations, err := annotations.Rename("SPEAKER_00", "Anna")
	if s := annotations.Speakers(line.Snapshot()); err != nil || s[0].Speaker != "Anna" {
		t.Errorf("%+v, %v", s, err)
	}
}

// A match that is withdrawn is null in the message, and no turn has it any more.
// What is no label is an error.
func TestWithdrawnMatch(t *testing.T) {
	line := NewTimeline()
	for _, e := range []Event{
		NewMatchEvent(1, "SPEAKER_00", "Sam"), NewSpeakerEvent(TypeSpeakerEnd, 2, "SPEAKER_00"),
		NewMatchEvent(2, "SPEAKER_00", "").Moved(2.5, "SPEAKER_00"),
	} {
		parsed, err := ParseEvent(e.Raw)
		if err != nil || parsed.Match != e.Match || parsed.Unmatched != e.Unmatched {
			t.Fatalf("%s: %+v, %v", e.Raw, parsed, err)
		}
		line.Apply(parsed)
	}
	testkit.Equal(t, string(NewMatchEvent(2, "A", "").Raw), `{"type":"diarization_speaker_start","data":{"timestamp":2,"speaker":"A","match":null}}`)
	got := append(line.Apply(NewSpeakerEvent(TypeSpeakerEnd, 4, "SPEAKER_00")), line.Snapshot().Turns()...)
	for _, turn := range got {
		testkit.Equal(t, turn.Match, "", turn)
	}
	if e, err := ParseEvent([]byte(`{"type":"diarization_speaker_start","data":{"timestamp":2,"speaker":"A","match":7}}`)); err == nil {
		t.Errorf("a number as match: %+v", e)
	}
}
