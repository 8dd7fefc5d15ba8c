package tui

import (
	"testing"

	"hubbub/protocol/testkit"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// A new label is most likely the speaker who had the same label before, else the
// first who is not new.
func TestMatchForANewLabel(t *testing.T) {
	s := tuitest.State(tuitest.Turns(4, 100, 7), 90, 1)
	s.Timeline.Lanes[2].Speaker, s.Timeline.Lanes[3].Speaker = "SPEAKER_01#2", "SPEAKER_09"
	s.NewLabels = []string{"SPEAKER_01#2", "SPEAKER_09"}
	for label, want := range map[string]string{"SPEAKER_01#2": "SPEAKER_01", "SPEAKER_09": "SPEAKER_00", "SPEAKER_07#2": "SPEAKER_00"} {
		testkit.Equal(t, display.NewSession(s, nil).MatchFor(label), want, label, "may be")
	}
	s.NewLabels = append(s.NewLabels, "SPEAKER_00", "SPEAKER_01")
	testkit.Equal(t, display.NewSession(s, nil).MatchFor("SPEAKER_09"), "SPEAKER_09", "among new labels only, SPEAKER_09 may be")
}
