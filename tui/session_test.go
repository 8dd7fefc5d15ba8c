package tui

import (
	"testing"

	"hubbub/protocol/testkit"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func TestSortedByTalkTime(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	style := map[string]canvas.Style{}
	for _, p := range m.session().Speakers {
		style[p.Label] = p.Style
	}
	press(m, "s")
	sorted := m.session().Speakers
	for i, p := range sorted {
		if i > 0 && p.Lane.Talk > sorted[i-1].Lane.Talk {
			t.Errorf("lane %d talked more than the one above", i)
		}
		if p.Style != style[p.Label] || p.Name != p.Label || p.Lane.Speaker != p.Label {
			t.Errorf("lane %d is %s's in colour %v, belongs to %s", i, p.Name, p.Style, p.Label)
		}
	}
	if len(sorted) != 4 || sorted[0].Label == "SPEAKER_00" {
		t.Errorf("the order has not changed: %v", sorted)
	}
}

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
