package tui

import (
	"strings"
	"testing"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// recognisedState has two speakers whom voiceprints match, of whom one has a typed
// name too.
func recognisedState() (display.State, *protocol.AnnotationsStore) {
	s := tuitest.State(tuitest.Turns(4, 200, 7), 75.2, 1)
	s.Timeline.Lanes[0].Match, s.Timeline.Lanes[1].Match = "Sam", "Rosa"
	annotations, err := protocol.Annotations{}.Rename("SPEAKER_01", "Anna")
	if err != nil {
		panic(err)
	}
	return s, protocol.NewAnnotationsStore(annotations)
}

func TestGoldenRecognised(t *testing.T) {
	for _, c := range []struct {
		name  string
		w, h  int
		ascii bool
		keys  []string
	}{
		{"40x8", 40, 8, false, nil}, {"80x24-ascii", 80, 24, true, nil}, {"120x34", 120, 34, false, nil},
		{"turns-80x24", 80, 24, false, []string{"t"}}, {"presenter-80x24", 80, 24, false, []string{"f"}},
		{"help-40x8", 40, 8, false, []string{"?"}}, {"help-80x24", 80, 24, false, []string{"?"}}, {"help-120x34", 120, 34, false, []string{"?"}},
	} {
		s, store := recognisedState()
		m := testModel(s, c.w, c.h)
		m.o.Voices = "/home/sam/.local/share/hubbub/voices"
		m.annotations, m.glyphs = store, canvas.NewGlyphs(c.ascii)
		press(m, c.keys...)
		golden(t, "view-recognised-"+c.name, plainScreen(m))
	}
}

// A match that arrives without another turn is shown.
func TestLateMatchIsShown(t *testing.T) {
	s := tuitest.State(tuitest.Turns(4, 200, 7), 75.2, 1)
	m := testModel(s, 80, 24)
	_ = m.View()
	s.Timeline.Lanes = append([]protocol.Lane(nil), s.Timeline.Lanes...)
	s.Timeline.Lanes[2].Match = "Sam"
	s.Position += 0.1
	m.later(s)
	if view := string(plainScreen(m)); !strings.Contains(view, "≈Sam") {
		t.Errorf("the match is missing:\n%s", view)
	}
}
