package tui

import (
	"strings"
	"testing"

	"hubbub/protocol/testkit"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"

	tea "github.com/charmbracelet/bubbletea"
)

// TestTextInput edits a line with the keys of a terminal; | is the cursor.
func TestTextInput(t *testing.T) {
	for _, c := range []struct {
		start string
		key   tea.KeyType
		want  string
	}{
		{"ab|cd", tea.KeyLeft, "a|bcd"},
		{"|cd", tea.KeyLeft, "|cd"},
		{"ab|cd", tea.KeyRight, "abc|d"},
		{"ab|", tea.KeyCtrlF, "ab|"},
		{"ab|cd", tea.KeyHome, "|abcd"},
		{"ab|cd", tea.KeyCtrlE, "abcd|"},
		{"ab|cd", tea.KeyBackspace, "a|cd"},
		{"ab|cd", tea.KeyDelete, "ab|d"},
		{"ab|cd", tea.KeyCtrlU, "|cd"},
		{"ab|cd", tea.KeyCtrlK, "ab|"},
		{"one two |x", tea.KeyCtrlW, "one |x"},
		{"x👨\u200d👩\u200d👧|", tea.KeyBackspace, "x|"}, // a character as users see it
		{"|e\u0301x", tea.KeyDelete, "|x"},
	} {
		before, after, _ := strings.Cut(c.start, "|")
		m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 80, 24)
		m.input = &textInput{label: "name:", limit: 10, before: before, after: after}
		m.Update(tea.KeyMsg{Type: c.key})
		testkit.Equal(t, m.input.before+"|"+m.input.after, c.want, c.key, "changes", c.start, "to")
	}
}

// A text input keeps its limit, shows the cursor, and ends with the text or
// without.
func TestTextInputEnds(t *testing.T) {
	got := "nothing"
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 80, 24)
	input := textInput{label: "name:", limit: 5, done: func(text string) { got = text }}
	again := input
	m.input = &input
	screenHas(t, m, "name:  abcd", " abcdefgh")
	screenHas(t, m, "enter ok  esc cancel")
	press(m, "enter")
	if got != "abcd" || m.input != nil {
		t.Errorf("entered %q", got)
	}
	m.input = &again
	press(m, "x", "esc")
	if got != "abcd" || m.input != nil {
		t.Errorf("esc entered %q", got)
	}
}

// TestBothNamesOfAQuestionAreReadable, however long they are.
func TestBothNamesOfAQuestionAreReadable(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 80, 24)
	for lane, name := range map[string]string{"1": "Bartholomew Quentin Worthington-Smythe III", "2": "Charlotte Wilhelmina Featherstonehaugh of York"} {
		press(m, lane, "r", name, "enter")
	}
	press(m, "2", "m")
	rows := strings.Join(strings.Fields(strings.Join(screenRows(m)[21:], " ")), " ")
	if want := "merge Charlotte Wilhelmina Featherstonehaugh of York into Bartholomew Quentin Worthington-Smythe III? ↑ ↓ or 1-4 enter yes esc no"; !strings.Contains(rows, want) {
		t.Errorf("the last rows are %q", rows)
	}
}

// TestGoToATime: a time in place of a command goes there, in a replay by playing from there.
func TestGoToATime(t *testing.T) {
	enter := func(m *model, text string) {
		press(m, ":", text, "enter")
	}
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 80, 24)
	enter(m, "1:30")
	if w := m.window(); w.follow || w.middle() < 85 || w.middle() > 95 {
		t.Errorf("the middle of the window is at %v", w.middle())
	}
	enter(m, "1:75")
	screenHas(t, m, "there is no command 1:75")
	press(m, "space")
	enter(m, "9:00:00")
	screenHas(t, m, "FROZEN 5:00.0")

	ended := tuitest.State(tuitest.FourSpeakers, 300, 1)
	ended.Playback, ended.Conn = &display.Playback{Paused: true, Speed: 1}, display.Closed
	m = testModel(ended, 80, 24)
	p := &tuitest.Player{}
	m.o.Player = p
	m.bindKeys()
	m.o.Snapshot = func() display.State {
		playing := ended
		playing.Playback, playing.Conn = &display.Playback{Speed: 1}, display.Open
		return playing
	}
	enter(m, "1:02:03")
	if len(p.Sought) != 1 || p.Sought[0] != 3723 || m.cursor >= 0 {
		t.Errorf("sought %v, the cursor of a replay that plays again is at %v", p.Sought, m.cursor)
	}
	m = wireModel(tuitest.Log(false), 100, 40)
	enter(m, "90")
	if m.wire != nil {
		t.Error("the wire view is still open")
	}
}
