package tui

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func TestFreezeStopsTheTimelineAndNothingElse(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	before := screenRows(m)
	press(m, "space")
	m.later(tuitest.State(tuitest.FourSpeakers, 130, 1))
	after := screenRows(m)
	for y := 2; y < 28; y++ {
		if before[y] != after[y] {
			t.Errorf("row %d moved while frozen:\n%s\n%s", y, before[y], after[y])
		}
	}
	screenHas(t, m, "FROZEN -0:30")
	screenHas(t, m, "1300 chunks sent") // the audio goes on
	press(m, "left")                    // scrolling in what is frozen
	screenHas(t, m, "FROZEN")
	screenHasNot(t, m, "FROZEN", "space")
	if w := m.window(); !w.follow || w.position != 130 {
		t.Errorf("after the freeze the window is at %v, follow %v", w.position, w.follow)
	}
}

func TestScrollingBackStandsStillWhileTheSessionGoesOn(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 30)
	press(m, "left")
	at := m.window().at(0)
	m.later(tuitest.State(tuitest.FourSpeakers, 400, 1))
	if got := m.window().at(0); got != at {
		t.Errorf("the window moved from %v to %v", at, got)
	}
	screenHas(t, m, "BACK -1:4")
	press(m, "end")
	if !m.window().follow {
		t.Error("end does not follow the present")
	}
	press(m, "home")
	if w := m.window(); w.at(0) < -w.cellDur || w.at(0) > 2*w.cellDur {
		t.Errorf("home goes to %v s", w.at(0))
	}
	press(m, "shift+left", "left", "left")
	if w := m.window(); w.at(0) < -w.cellDur {
		t.Errorf("scrolling goes to %v s, before the session", w.at(0))
	}
	for range 200 {
		press(m, "right")
	}
	if !m.window().follow {
		t.Error("scrolling on does not arrive at the present")
	}
}

func TestZoomKeys(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 30)
	screenHas(t, m, "60 s across")
	screenHas(t, m, "30 s across", "+")
	screenHas(t, m, "5 s across", "+", "+", "+", "+", "+", "+")
	for range 20 {
		press(m, "-")
	}
	screenHas(t, m, "whole session")
	if w := m.window(); w.first != 0 {
		t.Errorf("the whole session begins in column %d", -w.first)
	}
	screenHas(t, m, "5 min across", "+")

	// Zooming out stops at the length of the session: no key in between changes nothing.
	m = testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	screenHas(t, m, "whole session", "-")
	screenHas(t, m, "60 s across", "-", "-", "-", "+")
	// A session that is shorter than the view.
	m = testModel(tuitest.State(tuitest.FourSpeakers, 12, 1), 100, 30)
	screenHas(t, m, "whole session", "-")
	screenHas(t, m, "10 s across", "+")
}

// A message makes room for the keys: the answer to a key after 3 s, a problem
// after 8 s, both at the next key, and where there is room they share the line.
func TestMessagesMakeRoomForTheKeys(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 100, 1)
	m := testModel(s, 120, 30)
	screenHas(t, m, "lanes sorted by talk time   q quit  ? help", "s")
	s.Position += 4
	m.later(s)
	screenHasNot(t, m, "lanes sorted")
	m.Update(Msg{Text: "the disk is full", Problem: true})
	s.Position += 4
	m.later(s)
	screenHas(t, m, "the disk is full   q quit")
	screenHasNot(t, m, "the disk is full", "+")
	m.Update(Msg{Text: "the disk is full", Problem: true})
	m.Update(Msg{Text: "audio is missing"}) // all can be read
	m.Update(Msg{Text: "another microphone"})
	for _, text := range []string{"the disk is full", "audio is missing", "another microphone"} {
		screenHas(t, m, text)
		s.Position += 4
		m.later(s)
	}
	s.Position += 5
	m.later(s)
	screenHasNot(t, m, "another microphone")
	screenHasNot(t, m, "the disk is full")
	press(m, "b") // a prompt is in their place
	m.Update(Msg{Text: "new labels: J joins them"})
	s.Position += 20
	m.later(s)
	press(m, "esc")
	s.Position++
	m.later(s)
	screenHas(t, m, "new labels: J joins them")
}

// A stream that is lost again at once does not continue, whatever was just said, and the
// cause of the loss is there once.
func TestNoticeOfAStateThatHasPassed(t *testing.T) {
	const cause = "connection reset by peer"
	s := tuitest.State(tuitest.FourSpeakers, 100, 1)
	m := testModel(s, 80, 24)
	lose := func() {
		s.Conn, s.ConnReason = display.Reconnecting, cause
		m.later(s)
		m.Update(Msg{Text: "stream lost, resuming: " + cause, Problem: true})
		screenHas(t, m, "○ reconnecting ")
		if screen := m.View(); strings.Count(screen, cause) != 1 || strings.Contains(screen, "the stream continues") {
			t.Errorf("without a connection the screen is\n%s", screen)
		}
	}
	resume := func(after float64) {
		s.Conn, s.ConnReason = display.Open, ""
		s.Position += after
		m.later(s)
		m.Update(Msg{Text: "the stream continues"})
	}
	lose()
	resume(1)
	screenHas(t, m, "stream lost, resuming: "+cause) // there was no time to read it
	lose()
	resume(4)
	s.Position += 4
	m.later(s)
	screenHas(t, m, "the stream continues")
	lose()
	s.Conn, s.ConnReason = display.Failed, "not resumed within 2s"
	m.later(s)
	screenHasNot(t, m, "resuming")
}

// The cause of a loss is not left to a line that is not there, or cuts it off.
func TestNoticeThatTheProblemLineHasNot(t *testing.T) {
	const cause = "the sender lost its stream, waiting for it to resume: error: connection lost"
	s := tuitest.State(tuitest.FourSpeakers, 100, 1)
	s.Watching, s.Conn, s.ConnReason = true, display.Connecting, cause
	m := testModel(s, 120, 24)
	m.o.Wire = trace.NewLog().Snapshot
	m.Update(Msg{Text: cause, Problem: true})
	for _, width := range []int{120, 80} {
		m.Update(tea.WindowSizeMsg{Width: width, Height: 24})
		if screen := m.View(); strings.Count(screen, cause) != 1 {
			t.Errorf("%d columns:\n%s", width, screen)
		}
	}
	m.Update(tea.WindowSizeMsg{Width: 60, Height: 24})
	screenHas(t, m, "waiting for it to resume:\n error: connection lost ")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	press(m, "w")
	m.Update(Msg{Text: cause, Problem: true})
	screenHas(t, m, cause)
}

// The end of a notice says what to do: a narrow screen does not cut it off.
func TestLongNoticeHasSeveralRows(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 80, 24)
	m.o.Wire = trace.NewLog().Snapshot
	m.Update(Msg{Text: "the stream continues; the service does not know its speakers and gives them new labels: J joins them"})
	for _, width := range []int{80, 40} {
		m.Update(tea.WindowSizeMsg{Width: width, Height: 24})
		rows := strings.Join(strings.Fields(strings.Join(screenRows(m)[21:], " ")), " ")
		testkit.Contains(t, rows, "and gives them new labels: J joins them", width, "columns: the last rows")
	}
	m.Update(Msg{Text: strings.Repeat("very long ", 50) + "end"})
	m.now = func() time.Time { return time.Unix(1_000_010, 0) }
	m.Update(tickMsg{})
	if rows := screenRows(m); strings.Contains(rows[20], "long") || !strings.HasPrefix(rows[21], " very long") || !strings.Contains(rows[23], "…") || !strings.HasSuffix(rows[23], " long end") {
		t.Errorf("the last rows are %q", rows[20:])
	}
}

func TestQuickKeysArriveTogether(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 30)
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("--")})
	screenHas(t, m, "5 min across")
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("++q"), Paste: true})
	screenHas(t, m, "5 min across")
	_, cmd := m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("??q")})
	testkit.Equal(t, runCommand(cmd), tea.Quit(), "q after other keys leads to")
}

func TestSpeakersThatDoNotFitAreReached(t *testing.T) {
	m := testModel(tuitest.State(tuitest.Turns(8, 200, 3), 190, 1), 60, 9)
	screenHas(t, m, "SPEAKER_00")
	screenHasNot(t, m, "SPEAKER_07")
	screenHas(t, m, "↓ 3")
	screenHas(t, m, "SPEAKER_07", "down", "down", "down", "down", "down", "down", "down", "down")
	screenHas(t, m, "↑ 3")
	screenHas(t, m, "SPEAKER_00", "up", "up", "up", "up", "up", "up", "up")
}

func TestHelpListsEveryKeyAtEverySize(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		for _, size := range [][2]int{{40, 8}, {80, 24}, {200, 50}, {45, 12}} {
			m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), size[0], size[1])
			// With everything that a session can have.
			m.o.Controls = display.Controls{Snapshot: m.o.Snapshot, Export: noExport, Player: &tuitest.Player{}, Wire: noWire, Microphones: &fakeMicrophones{}}
			m.glyphs = canvas.NewGlyphs(ascii)
			m.bindKeys()
			text, pages := helpText(t, m)
			if pages > 4 {
				t.Errorf("%v: the help has %d pages", size, pages)
			}
			for _, b := range m.bindings {
				if b.help == "" || b.on != timelineScreen && b.on != anyScreen {
					continue
				}
				want := b.help
				if size[1] < 20 {
					want = b.shortHelp()
				}
				if !strings.Contains(text, b.keyText(ascii)+" ") || !strings.Contains(text, want) {
					t.Errorf("%v, ascii %v: the help lacks %q, %q:\n%s", size, ascii, b.keyText(ascii), want, text)
				}
			}
			screenHasNot(t, m, "suspend", "?", "esc")
		}
	}
}

func TestQuittingAsksForUnsavedChanges(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 100, 30)
	press(m, "b", "enter")
	if cmd := press(m, "q"); cmd != nil && cmd() != nil {
		t.Fatal("q quits, and the bookmark is lost")
	}
	screenHas(t, m, "q again quits")
	press(m, "+") // something else: q asks again
	if cmd := press(m, "q"); cmd != nil && cmd() != nil {
		t.Fatal("q quits without asking again")
	}
	press(m, ":", "zoom in", "enter") // the same by name
	if cmd := press(m, "q"); cmd != nil && cmd() != nil {
		t.Fatal("q quits without asking again, after a command by name")
	}
	if cmd := press(m, "q"); cmd == nil || cmd() == nil {
		t.Error("q twice does not quit")
	}
	m = testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 100, 30)
	press(m, "b", "enter")
	m.annotations.MarkSaved(m.annotations.Load())
	if cmd := press(m, "q"); cmd == nil || cmd() == nil {
		t.Error("q asks about what is saved")
	}
}

func TestPlaybackKeys(t *testing.T) {
	p := &tuitest.Player{}
	s := tuitest.State(tuitest.FourSpeakers, 300, 1)
	s.Playback = &display.Playback{Paused: true, Speed: 2}
	m := testModel(s, 80, 24)
	m.o.Player = p
	m.bindKeys()
	screenHas(t, m, "PAUSED")
	press(m, "p", "space", ",", ".", ">", "<", ">")
	if p.Toggled != 2 || m.frozen != nil || p.Speed != 1 || len(p.Sought) != 2 || p.Sought[0] != 290 || p.Sought[1] != 310 {
		t.Errorf("%+v", p)
	}
	s.Playback = &display.Playback{Speed: 2}
	m.later(s)
	screenHas(t, m, "2x")
	screenHasNot(t, m, "paused", "f")
	s.Playback = &display.Playback{Paused: true, Speed: 1}
	m.later(s)
	screenHas(t, m, "paused") // also in the presenter view
	press(m, "f")
	s.Playback, s.Conn = &display.Playback{Paused: true, Speed: 1}, display.Closed
	m.later(s)
	screenHasNot(t, m, "PAUSED")
}

func TestMouse(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 300, 1)
	s.Timeline.Lanes[1].Turns = append([]protocol.Turn(nil), s.Timeline.Lanes[1].Turns...)
	m := testModel(s, 100, 30)
	click := func(x, y int, button tea.MouseButton, action tea.MouseAction) {
		m.Update(tea.MouseMsg{X: x, Y: y, Button: button, Action: action})
	}
	l, w := m.layout(), m.window()
	lane := 2
	turns := s.Timeline.Lanes[lane].Turns
	turn := turns[len(turns)-1]
	for k := len(turns) - 1; turn.End-turn.Start < 2 || w.column(turn.End) >= w.cells-3; k-- {
		turn = turns[k]
	}
	click(l.gutter+w.column((turn.Start+turn.End)/2), l.lanesY+lane*l.pitch, tea.MouseButtonLeft, tea.MouseActionPress)
	screenHas(t, m, "SPEAKER_02  "+display.ClockTenths(turn.Start)+" to "+display.ClockTenths(turn.End))
	testkit.Equal(t, m.selected, "SPEAKER_02", "selected")
	click(l.gutter, 0, tea.MouseButtonLeft, tea.MouseActionPress) // above the lanes
	press(m, "f")
	click(l.gutter, l.lanesY, tea.MouseButtonLeft, tea.MouseActionPress) // there are no lanes
	press(m, "f")
	testkit.Equal(t, m.selected, "SPEAKER_02", "a click beside the lanes selects")
	click(0, 0, tea.MouseButtonWheelUp, tea.MouseActionPress)
	if m.window().follow {
		t.Error("the wheel does not scroll")
	}
	m.Update(tea.MouseMsg{Button: tea.MouseButtonWheelDown, Ctrl: true, Action: tea.MouseActionPress})
	screenHas(t, m, "2 min across")
	m.Update(tea.MouseMsg{Button: tea.MouseButtonWheelUp, Ctrl: true, Action: tea.MouseActionPress})
	screenHas(t, m, "60 s across")
	before := m.view
	click(50, 10, tea.MouseButtonLeft, tea.MouseActionMotion)
	testkit.Equal(t, m.view, before, "dragging does something")
	click(l.gutter, l.mapY, tea.MouseButtonLeft, tea.MouseActionPress)
	if w := m.window(); w.at(0) > w.cellDur {
		t.Errorf("a click at the minimap's start goes to %v", w.at(0))
	}
	press(m, "esc", "1", "m")
	click(0, l.lanesY, tea.MouseButtonLeft, tea.MouseActionPress)
	screenHas(t, m, "merge SPEAKER_00 into SPEAKER_01?") // nobody is merged with themselves
	click(0, l.lanesY+2*l.pitch, tea.MouseButtonLeft, tea.MouseActionPress)
	screenHas(t, m, "merge SPEAKER_00 into SPEAKER_02?")
	screenHas(t, m, "mouse on", "esc", "M")
}

// TestHelpAfterAResize: of a page that a larger screen does not have, the last one is
// shown, and no page of another view.
func TestHelpAfterAResize(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 40, 8)
	screenHas(t, m, "keys 2 of 2", "?", "?")
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 34})
	screenHas(t, m, "name a speaker")
	screenHasNot(t, m, "figures")
	screenHasNot(t, m, "name a speaker", "?")
}

// TestKeysOfTheHelp: a key that the help lists closes it, because the help may cover the answer.
func TestKeysOfTheHelp(t *testing.T) {
	for _, size := range [][2]int{{40, 12}, {80, 24}, {120, 34}} {
		m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), size[0], size[1])
		screenHas(t, m, "q again quits", "b", "enter", "?", "q")
		screenHasNot(t, m, "suspend", "?", "2")
		screenHas(t, m, "name of SPEAKER_01", "?", "r")
		screenHas(t, m, "Anna", "Anna")
	}
}

// TestHelpOfTheList: it has the keys of the timeline that are about the selected row, unless the list has them.
func TestHelpOfTheList(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 80, 24)
	m.o.Keys, _, _ = NewKeymap([]KeySetting{{Screen: "turn-list", Command: "copy", Keys: []string{"x"}}})
	m.bindKeys()
	screenHas(t, m, "name a speaker", "t", "?")
	screenHas(t, m, "remove that bookmark")
	screenHas(t, m, "copy row, or all")
	screenHasNot(t, m, "mute a lane")
	screenHasNot(t, m, "zoom in, out")
}

// TestHelpHasAddresses: the help shows the page and the stream that others can watch, each as a whole or not at all.
func TestHelpHasAddresses(t *testing.T) {
	for _, size := range [][2]int{{60, 15}, {80, 24}, {100, 34}, {120, 34}, {200, 40}} {
		s := tuitest.State(tuitest.FourSpeakers, 60, 1)
		s.Stream = tuitest.Stream
		m := testModel(s, size[0], size[1])
		screenHas(t, m, "stream "+tuitest.Stream, "?")
		s.Page = "http://127.0.0.1:8800/qpze23lqnrhb4ubeqxz5tq26yh"
		m.later(s)
		screenHas(t, m, "stream "+tuitest.Stream)
		screenHas(t, m, "page "+s.Page)
		m.Update(tea.WindowSizeMsg{Width: 40, Height: 8})
		screenHasNot(t, m, "stream ")
		screenHasNot(t, m, "page http")
	}
}

// TestInterruptWhileTyping: ctrl+c always interrupts, and ctrl+z suspends.
func TestInterruptWhileTyping(t *testing.T) {
	for _, begin := range []string{"b", ":", "r", "m"} {
		m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 100, 30)
		press(m, "1", begin, "Ann")
		before := ansi.Strip(m.View())
		testkit.Equal(t, runCommand(press(m, "ctrl+z")), tea.Suspend(), "ctrl+z after", begin)
		m.Update(tea.ResumeMsg{})
		if after := ansi.Strip(m.View()); after != before {
			t.Errorf("after %s and ctrl+z the prompt has changed:\n%s", begin, after)
		}
		if cmd := press(m, "ctrl+c"); cmd == nil || !m.interrupted {
			t.Errorf("after %s ctrl+c does not interrupt", begin)
		}
	}
}

// TestEscapeAndEnterAtOnce: a slow line delivers them as one key.
func TestEscapeAndEnterAtOnce(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 100, 30)
	press(m, "b", "keep?")
	m.Update(tea.KeyMsg{Type: tea.KeyEnter, Alt: true})
	if m.input != nil || len(m.session().Bookmarks) != 0 {
		t.Errorf("input %v, bookmarks %v", m.input, m.session().Bookmarks)
	}
}

// TestResume: while the program was stopped, the terminal had the mouse.
func TestResume(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 100, 30)
	m.mouse = true
	if _, cmd := m.Update(tea.ResumeMsg{}); cmd == nil || cmd() != tea.EnableMouseCellMotion() {
		t.Error("the mouse is not taken back")
	}
	m.mouse = false
	if _, cmd := m.Update(tea.ResumeMsg{}); cmd != nil {
		t.Error("the mouse is taken, which the user has left to the terminal")
	}
	m.suspended = true // by ctrl+z, after which Bubble Tea draws the screen itself
	for _, again := range []bool{false, true} {
		if _, cmd := m.Update(continuedMsg{}); (cmd != nil) != again {
			t.Errorf("the screen is drawn again: %v, want %v", cmd != nil, again)
		}
	}
}

// TestNewestTurnOutsideTheWindow is described all the same.
func TestNewestTurnOutsideTheWindow(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 30)
	for i := range m.session().Speakers {
		m.notice = ""
		m.selected = m.session().Speakers[i].Label
		for range 4 {
			press(m, "+")
		}
		if press(m, "enter"); !strings.HasPrefix(m.notice, m.selected+"  ") {
			t.Errorf("of speaker %d is said %q", i, m.notice)
		}
	}
}

// TestOpenTurnIsDescribed, where the window shows it, with a talk time that has an hour only by it.
func TestOpenTurnIsDescribed(t *testing.T) {
	s := tuitest.State(nil, 4000, 1)
	turn := protocol.Turn{Speaker: "SPEAKER_00", Start: 3, End: 3593}
	s.Timeline.Lanes = []protocol.Lane{{Speaker: turn.Speaker, Turns: []protocol.Turn{turn}, Talk: 3590, Open: true, OpenSince: 3600}}
	m := testModel(s, 80, 24)
	screenHas(t, m, "SPEAKER_00 1:06:29", "1", "enter")
	screenHas(t, m, "SPEAKER_00  since 1:00:00.0, still speaking")
	screenHas(t, m, "SPEAKER_00  0:03.0 to 59:53.0, 3590.0 s", "home", "enter")
}

// TestSmallScreen: the response to a key has room, and what is missing is said.
func TestSmallScreen(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 39, 12)
	screenHas(t, m, "needs 40x8")
	paused := m.state
	paused.Playback = &display.Playback{Paused: true, Speed: 1}
	m.later(paused)
	screenHas(t, m, "PAUSED")
	paused.Conn = display.Closed
	m.later(paused)
	screenHasNot(t, m, "PAUSED")
	screenHas(t, m, "q again quits", "b", "enter", "q")
	m = wireModel(tuitest.Log(false), 100, 30)
	press(m, "w")
	m.Update(tea.WindowSizeMsg{Width: 39, Height: 12})
	for _, key := range []string{"?", "t", "f", "w"} {
		screenHas(t, m, "no room for this view", "esc", key)
		if m.screen() != timelineScreen || m.help > 0 || m.presenter {
			t.Errorf("%s opens a view that is not drawn", key)
		}
	}
}
