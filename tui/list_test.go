package tui

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func TestListFollowsTheEndOrStays(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 300, 1)
	m := testModel(s, 80, 24)
	screenHas(t, m, "turns and bookmarks", "t")
	last := func() string {
		rows := screenRows(m)
		return strings.TrimSpace(rows[len(rows)-3])
	}
	newest := last()
	m.later(tuitest.State(tuitest.FourSpeakers, 320, 1))
	if last() == newest {
		t.Errorf("the list does not follow the newest turn: %q", newest)
	}
	press(m, "up", "up", "up")
	before := screenRows(m)
	m.later(tuitest.State(tuitest.FourSpeakers, 400, 1))
	for y, row := range screenRows(m)[2:21] {
		if row != before[y+2] {
			t.Fatalf("row %d moved although a turn is selected:\n%s\n%s", y, before[y+2], row)
		}
	}
	screenHas(t, m, "▌ 0:00", "home")
	press(m, "end", "esc")
	if m.list != nil {
		t.Error("esc does not close the list")
	}
}

func TestListFiltersBySpeakerAndText(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 80, 24)
	screenHas(t, m, "◆ budget", "1", "r", "Anna", "enter", "b", "budget", "enter", "t")
	screenHas(t, m, "turns of SPEAKER_01", "2")
	screenHasNot(t, m, "Anna")
	screenHasNot(t, m, "budget")
	screenHas(t, m, "budget", "2", "/", "BUDG", "enter")
	screenHasNot(t, m, "Anna")
	screenHas(t, m, "Anna", "esc")
}

// TestLanesBesideTheList: they have the room of the latest turns, which the list shows.
func TestLanesBesideTheList(t *testing.T) {
	for _, size := range [][2]int{{120, 34}, {120, 40}, {200, 60}} {
		m := testModel(tuitest.State(tuitest.Turns(2, 200, 3), 190, 1), size[0], size[1])
		press(m, "t")
		if l := m.layout(); l.stateY-l.mapY > 6 {
			t.Errorf("%v: the session line is at %d, the status line at %d", size, l.mapY, l.stateY)
		}
	}
}

func TestListJumps(t *testing.T) {
	p := &tuitest.Player{}
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 120, 34)
	m.o.Player = p
	press(m, "t", "home", "down", "enter")
	rows := m.listRows(m.session())
	if len(p.Sought) != 1 || p.Sought[0] != rows[1].at {
		t.Errorf("sought %v, the turn is at %v", p.Sought, rows[1].at)
	}
	if !m.window().follow {
		t.Error("the timeline does not follow the replay, which continues from the turn")
	}
	m.o.Player = nil
	press(m, "enter")
	if w := m.window(); w.follow || w.column(rows[1].at) < 0 || w.column(rows[1].at) >= w.cells {
		t.Errorf("without a player the timeline shows %v to %v", w.at(0), w.end())
	}
	if m.list == nil {
		t.Error("the list beside the timeline is closed")
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	press(m, "enter")
	if m.list != nil {
		t.Error("the list stays in the place of the timeline")
	}
}

func TestListMouse(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 120, 34)
	press(m, "t", "home")
	rows := m.listRows(m.session())
	x, w, h := m.layout().list()
	for _, c := range []struct {
		name     string
		x, y     int
		button   tea.MouseButton
		selected int // row
	}{
		{"a click selects the row", x, listY + 4, tea.MouseButtonLeft, 4},
		{"a click on the title", x, listY - 1, tea.MouseButtonLeft, 4},
		{"a click below the list", x, listY + h, tea.MouseButtonLeft, 4},
		{"a click on the timeline", x - 1, listY + 6, tea.MouseButtonLeft, 4},
		{"the wheel", x + w, listY, tea.MouseButtonWheelDown, 7},
		{"the wheel sideways", x + w, listY, tea.MouseButtonWheelRight, 7},
		{"the wheel back", x + w, listY, tea.MouseButtonWheelUp, 4},
	} {
		m.Update(tea.MouseMsg{X: c.x, Y: c.y, Button: c.button, Action: tea.MouseActionPress})
		if got := m.list.Index(rows); got != c.selected {
			t.Errorf("%s: row %d is selected, want %d", c.name, got, c.selected)
		}
	}
}

func TestListCopies(t *testing.T) {
	t.Setenv("TMUX", "")
	t.Setenv("STY", "")
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 110, 24)
	var out strings.Builder
	m.o.Output = &out
	runCommand(press(m, "t", "up", "y"))
	rows := m.listRows(m.session())
	r := rows[len(rows)-2]
	text := fmt.Sprintf("%s to %s  %s\n", display.ClockTenths(r.turn.Start), display.ClockTenths(r.turn.End), r.name)
	testkit.Contains(t, out.String(), base64.StdEncoding.EncodeToString([]byte(text)), "does not copy", text)
	screenHas(t, m, "1 row sent to the terminal's clipboard (OSC 52, not every terminal takes it; export with ")
	runCommand(press(m, "end", "y"))
	screenHas(t, m, fmt.Sprintf("%d rows sent to the terminal's clipboard (OSC 52, not every terminal takes it; select one, or export with", len(rows)))
}

// One turn is moved to another speaker, and back by undo; exports and replays
// take the same annotations.
func TestListMovesATurn(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 120, 34)
	press(m, "t", "up", "up")
	r, _ := m.selectedRow()
	s := m.session()
	to := (s.Index(r.label) + 1) % 4
	before := len(s.Speakers[to].Turns)
	screenHas(t, m, "the turn at "+display.Clock(r.at)+" is "+s.Speakers[to].Name+"'s now, u undoes it", ">", fmt.Sprint(to+1))
	a, _ := m.annotations.Load()
	testkit.Equal(t, a.Owner(r.turn), s.Speakers[to].Label, "the turn is of")
	testkit.Equal(t, len(m.session().Speakers[to].Turns), before+1, "turns")
	screenHas(t, m, "undone: the turn at "+display.Clock(r.at)+" moved to "+s.Speakers[to].Name, "u")
	if a, _ := m.annotations.Load(); !a.Equal(protocol.Annotations{}) {
		t.Error("undo leaves the turn with the other speaker")
	}
	press(m, ">", "esc")
	if m.annotations.Unsaved() {
		t.Error("the change that was undone is to be saved")
	}
	for _, lane := range []string{"1", "2", "3", "4"} { // the turn stays selected
		press(m, ">", lane)
		if got, _ := m.selectedRow(); got.at > r.at || got.turn.End <= r.at || got.label != m.session().Speakers[lane[0]-'1'].Label {
			t.Errorf("after the turn at %v was moved to lane %s, that of %s at %v is selected", r.at, lane, got.name, got.at)
		}
	}
}

func TestCursorOfAFrozenView(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 80, 24)
	press(m, "space", "left", "left", "left")
	m.later(tuitest.State(tuitest.FourSpeakers, 330, 1))
	w := m.window()
	want := 300 - 3*w.cellDur
	if math.Abs(m.cursor-want) > 1e-6 || !w.follow {
		t.Fatalf("the cursor is at %v, want %v; the window follows: %v", m.cursor, want, w.follow)
	}
	screenHas(t, m, "FROZEN "+display.ClockTenths(want))
	press(m, "b", "enter")
	if s := m.session(); len(s.Bookmarks) != 1 || s.Bookmarks[0].At != protocol.Round1ms(want) {
		t.Errorf("bookmarks %v, want one at %v", s.Bookmarks, want)
	}
	for range 2 * w.cells { // past the edge, the window goes with it
		press(m, "left")
	}
	if w := m.window(); w.follow || w.column(m.cursor) < 0 || w.column(m.cursor) >= w.cells {
		t.Errorf("the cursor at %v is outside %v to %v", m.cursor, w.at(0), w.end())
	}
	press(m, "space")
	testkit.Equal(t, m.cursor, -1, "the cursor stays in a view that moves")
	press(m, "home", "space", "right") // from the middle of a view of the past
	if w := m.window(); math.Abs(m.cursor-w.middle()-w.cellDur) > 1e-6 {
		t.Errorf("the cursor is at %v of %v to %v", m.cursor, w.at(0), w.end())
	}
}

func TestCursorOfAPausedReplay(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 300, 1)
	s.Playback = &display.Playback{Paused: true, Speed: 1}
	m := testModel(s, 80, 24)
	m.o.Player = &tuitest.Player{}
	m.bindKeys()
	press(m, "left", "left", "b", "enter")
	if k := m.session().Bookmarks; len(k) != 1 || k[0].At >= 300 || k[0].At < 295 {
		t.Errorf("bookmarks %v", k)
	}

	press(m, "+", "+")
	if m.window().follow {
		t.Error("the cursor is at the present")
	}
	press(m, "space")
	if m.cursor != -1 || !m.window().follow {
		t.Error("what plays again is not followed")
	}
}

func TestCommandsByName(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 120, 34)
	screenHas(t, m, "zoom in  zoom out", ":zoo")
	screenHas(t, m, ": zoom in", "tab")
	screenHas(t, m, "2 min across", "backspace", "backspace", "o", "tab", "enter")
	screenHas(t, m, "there is no command nosuch", ":nosuch", "enter")
	screenHas(t, m, "turns and bookmarks", ":turns", "enter")
	screenHas(t, m, "move the turn of SPEAKER_0", ":mov", "enter")  // a command of the list
	screenHas(t, m, "sorted by talk time", "esc", ":sort", "enter") // one of the timeline beside it
	testkit.Equal(t, runCommand(press(m, ":quit", "enter")), tea.Quit(), "quit leads to")
}

// Every key is a command, and every command has a name of its own on its screen.
func TestEveryKeyHasAName(t *testing.T) {
	type command struct {
		on   screen
		name string
	}
	for _, o := range []display.Controls{{}, {Player: &tuitest.Player{}}} {
		seen := map[command]bool{}
		for _, b := range newBindings() {
			if !b.available(Options{Controls: o}) || b.digit != nil || b.keys[0] == ":" {
				continue
			}
			c := command{b.on, b.name}
			if b.name == "" || seen[c] || b.name != ansi.Strip(strings.ToLower(b.name)) {
				t.Errorf("the keys %q have the name %q", b.keys, b.name)
			}
			seen[c] = true
		}
	}
}

// TestLatestTurnsAfterHours: names and clocks beside each other, also where the clock has
// become longer than any talk time.
func TestLatestTurnsAfterHours(t *testing.T) {
	turns := []protocol.Turn{{Speaker: "SPEAKER_00", Start: 3*3600 + 119, End: 3*3600 + 132.4}, {Speaker: "SPEAKER_01", Start: 3*3600 + 140, End: 3*3600 + 265}}
	for _, w := range []int{60, 80, 100, 140} {
		screen := ansi.Strip(testModel(tuitest.State(turns, 3*3600+300, 1), w, 40).View())
		for _, want := range []string{"SPEAKER_00 3:01:59", "13.4 s ", "SPEAKER_01 3:02:20", "125.0 s "} {
			if !strings.Contains(screen, want) {
				t.Errorf("%d columns: no %q in:\n%s", w, want, screen)
			}
		}
	}
	a := testkit.Must(protocol.Annotations{}.Bookmark(3*3600+100, "later"))(t)
	early := tuitest.State(nil, 2, 1) // of a replay
	early.Timeline.Lanes, early.Length = []protocol.Lane{{Speaker: "SPEAKER_00", Open: true, OpenSince: 1}}, 3*3600+300
	m := testModel(early, 80, 40)
	testkit.NoError(t, m.annotations.Update(func(protocol.Annotations) (protocol.Annotations, error) { return a, nil }))
	screenHasNot(t, m, "later")
	screenHas(t, m, "3:01:40  ◆ later", "t")

	early.Length = 0
	early.Timeline = protocol.Snapshot{Lanes: []protocol.Lane{{Speaker: "SPEAKER_00", Turns: turns[:1]}}, Decided: turns[0].End} // a service errs
	m = testModel(early, 80, 40)
	screenHas(t, m, " 3:01:59  SPEAKER_00", "t")
}

// TestBookmarksOfTheList: b and B are about the selected row, while the list is on the screen.
func TestBookmarksOfTheList(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 100, 24)
	press(m, "t", "up", "up")
	chosen, _ := m.selectedRow()
	screenHas(t, m, "bookmark "+display.Clock(chosen.at)+", note:", "b")
	press(m, "first", "enter", "up", "up", "up", "b", "second", "enter", "/", "first", "enter", "up")
	r, _ := m.selectedRow()
	screenHas(t, m, "removed the bookmark at "+display.Clock(r.at), "B")
	press(m, "/", "backspace", "backspace", "backspace", "backspace", "backspace", "enter", "up", "up", "up", "f", "b")
	screenHas(t, m, "bookmark 1:00, note:") // the present: the list is not on the screen
	screenHas(t, m, "turns and bookmarks", "esc", "t")
}

// TestListJumpsToABookmark: then it is the bookmark of b, [ and ], as after a jump by them.
func TestListJumpsToABookmark(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 24)
	for at, note := range map[float64]string{100.01: "first", 200.02: "second"} {
		m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(at, note) })
	}
	jump := []string{"t", "/", "second", "enter", "enter"}
	press(m, append(jump, "b")...)
	screenHas(t, m, "bookmark 3:20, note: second")
	screenHas(t, m, "◆ 1:40  (1 of 2", "esc", "[")
	press(m, append(jump, "]")...)
	screenHas(t, m, "no bookmark after this")
	for _, keys := range [][]string{{"["}, {":", "1", ":", "4", "0", "enter"}} { // the list is in the place of the timeline
		press(m, append([]string{"t"}, keys...)...)
		if w := m.window(); m.list != nil || math.Abs(w.middle()-100) > 1 {
			t.Errorf("%v: the list stays, or the timeline is at %v", keys, w.middle())
		}
	}
}

// TestLaneOfTheSelectedRow: what needs a speaker takes that of the selected turn.
func TestLaneOfTheSelectedRow(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 24)
	press(m, "1", "t", "up", "up")
	r, _ := m.selectedRow()
	if r.label == "SPEAKER_00" {
		t.Fatalf("%+v", r)
	}
	press(m, "r", "Anna", "enter")
	if a, _ := m.annotations.Load(); a.Name(r.label) != "Anna" || len(a.Names()) != 1 {
		t.Errorf("names %v, selected was a turn of %s", a.Names(), r.label)
	}
	press(m, "end", "x") // no row is selected
	screenHas(t, m, "SPEAKER_00 is muted")
}

// TestMergedTurnStaysSelected, whichever of the two labels it had.
func TestMergedTurnStaysSelected(t *testing.T) {
	for _, label := range []string{"SPEAKER_00", "SPEAKER_03"} {
		m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 24)
		press(m, "t", "up")
		r, _ := m.selectedRow()
		for r.label != label {
			press(m, "up")
			r, _ = m.selectedRow()
		}
		into := map[string]string{"SPEAKER_00": "4", "SPEAKER_03": "1"}[label]
		for _, keys := range [][]string{{"m", into}, {"u"}} {
			press(m, keys...)
			if is, _ := m.selectedRow(); is.at > r.at || is.turn.End < r.turn.End {
				t.Errorf("%s, %v: %+v was selected, now %+v", label, keys, r, is)
			}
		}
	}
}
