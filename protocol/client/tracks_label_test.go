package client

import (
	"fmt"
	"strings"
	"testing"

	"hubbub/protocol"
)

// TestTrackLabels: without rooms, all speech of a track is one speaker, whose turn
// lasts while any label of the track has one. With rooms, labels are those of the
// track's speakers in order of first speech.
func TestTrackLabels(t *testing.T) {
	steps := []struct {
		track   int
		typ     string
		at      float64
		speaker string
	}{
		{1, "start", 1, "SPEAKER_00"}, {0, "start", 1.5, "SPEAKER_00"}, {1, "start", 2, "SPEAKER_01"}, {1, "end", 2.5, "SPEAKER_00"},
		{0, "end", 3, "SPEAKER_00"}, {0, "end", 3, "SPEAKER_00"}, {1, "end", 4, "SPEAKER_01"},
	}
	for rooms, want := range map[bool]string{
		false: "start 1 SPEAKER_01,start 1.5 SPEAKER_00,end 3 SPEAKER_00,end 4 SPEAKER_01",
		true:  "start 1 SPEAKER_00,start 1.5 SPEAKER_01,start 2 SPEAKER_02,end 2.5 SPEAKER_00,end 3 SPEAKER_01,end 3 SPEAKER_01,end 4 SPEAKER_02",
	} {
		labels := newTrackLabels(rooms)
		var got []string
		for _, s := range steps {
			e := protocol.NewSpeakerEvent(map[string]string{"start": protocol.TypeSpeakerStart, "end": protocol.TypeSpeakerEnd}[s.typ], s.at, s.speaker)
			if e, ok := labels.event(s.track, e); ok {
				typ := "end"
				if e.Type == protocol.TypeSpeakerStart {
					typ = "start"
				}
				got = append(got, fmt.Sprintf("%s %v %s", typ, e.Timestamp, e.Speaker))
			}
		}
		if text := strings.Join(got, ","); text != want {
			t.Errorf("rooms %v:\n%s, want\n%s", rooms, text, want)
		}
		first, second := labels.track("SPEAKER_00"), labels.track("SPEAKER_01")
		if third := labels.track("SPEAKER_02"); rooms && (first != 1 || second != 0 || third != 1) || !rooms && (first != 0 || second != 1) {
			t.Errorf("rooms %v: the tracks of the labels are %d, %d, %d", rooms, first, second, third)
		}
	}
}
