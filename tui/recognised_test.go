package tui

import (
	"bytes"
	"strings"
	"testing"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// recognisedState has two speakers whom voiceprints match, of whom one has a typed
// name too.
func recognisedState() (display.State, *protocol.AnnotationsStore) {
	s := sampleState(sampleTurns(4, 200, 7), 75.2, 1)
	s.Timeline.Lanes[0].Match, s.Timeline.Lanes[1].Match = "Sam", "Rosa"
	notes, err := protocol.Annotations{}.Rename("SPEAKER_01", "Anna")
	if err != nil {
		panic(err)
	}
	return s, protocol.NewAnnotationsStore(notes)
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
		m.annotations, m.glyphs, m.dirty = store, canvas.NewGlyphs(c.ascii, false), true
		press(m, c.keys...)
		golden(t, "view-recognised-"+c.name, plainScreen(m))
	}
}

// A match that arrives without another turn is shown.
func TestLateMatchIsShown(t *testing.T) {
	s := sampleState(sampleTurns(4, 200, 7), 75.2, 1)
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

// A speaker is announced once when recognised; typed names are not.
func TestAccessibleAnnouncesRecognised(t *testing.T) {
	var b bytes.Buffer
	a := NewAccessible(&b)
	s := display.State{Conn: display.Open, Source: "mic", Server: "built-in server"}
	s.Timeline.Lanes = []protocol.Lane{{Speaker: "SPEAKER_00", Open: true}, {Speaker: "SPEAKER_01"}}
	notes, err := protocol.Annotations{}.Rename("SPEAKER_01", "Anna")
	if err != nil {
		t.Fatal(err)
	}
	a.use(protocol.NewAnnotationsStore(notes), nil)
	for range 2 {
		if err := a.State(s); err != nil {
			t.Fatal(err)
		}
		s.Timeline.Lanes = []protocol.Lane{{Speaker: "SPEAKER_00", Match: "Sam", Open: true}, {Speaker: "SPEAKER_01", Match: "Rosa"}}
	}
	_ = a.State(s)
	_ = a.Turn(protocol.Turn{Speaker: "SPEAKER_00", Start: 1, End: 3, Match: "Sam"})
	_ = a.Turn(protocol.Turn{Speaker: "SPEAKER_01", Start: 4, End: 5, Match: "Rosa"})
	want := `Listening to mic.
Connected to built-in server.
SPEAKER_00 is speaking.
SPEAKER_00 is recognised as Sam.
Sam, 0:01 to 0:03
Anna, 0:04 to 0:05
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}
