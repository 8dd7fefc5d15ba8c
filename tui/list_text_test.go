package tui

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// saidState is a session with words of several scripts.
func saidState() display.State {
	return tuitest.State([]protocol.Turn{
		{Speaker: "SPEAKER_00", Start: 1, End: 8, Text: strings.Repeat("the quick brown fox jumps over the lazy dog ", 4) + "at last"},
		{Speaker: "SPEAKER_01", Start: 9, End: 12, Text: strings.Repeat("我们星期五发布这个版本", 6)},
		{Speaker: "SPEAKER_02", Start: 13, End: 15, Text: "שלום לכולם, נתחיל בבקשה \x1b[2Jעכשיו"},
		{Speaker: "SPEAKER_03", Start: 16, End: 17},
	}, 20, 1)
}

// TestListShowsEveryScript: nothing is lost where a character's width differs between
// terminals, and no line begins with a full stop.
func TestListShowsEveryScript(t *testing.T) {
	for _, text := range []string{
		"Then हम अगले शुक्रवार को नया संस्करण ทดสอบภาษาไทย ok " + strings.Repeat("क्षत्रिय", 12) + " at last",
		strings.Repeat("👩‍👩‍👧 and 👍🏽 ", 8) + "at last",
		"version 2.0 " + strings.Repeat("我们下周五发布新版本。", 9),
		"다음 주 금요일에 새 버전을 출시합니다 그리고 가격을 논의합니다, " + strings.Repeat("שלום לכולם ", 9) + "سوف نطلق",
	} {
		for _, size := range [][2]int{{80, 24}, {40, 20}, {120, 34}} {
			m := testModel(tuitest.State([]protocol.Turn{{Speaker: "SPEAKER_00", Start: 1, End: 8, Text: text}}, 20, 1), size[0], size[1])
			press(m, "t")
			said := ""
			for _, r := range m.listRows(m.session())[1:] {
				screenHas(t, m, r.said)
				if strings.HasPrefix(r.said, "。") {
					t.Errorf("%v: a line is %q", size, r.said)
				}
				said += r.said
			}
			testkit.Equal(t, strings.ReplaceAll(said, " ", ""), strings.ReplaceAll(text, " ", ""), size)
		}
	}
}

// TestLatestTurnsHaveTheirWords: what is said is seen without a key, all of it where there is room.
func TestLatestTurnsHaveTheirWords(t *testing.T) {
	for _, high := range []bool{false, true} {
		m := testModel(saidState(), 120, map[bool]int{false: 34, true: 60}[high])
		screenHas(t, m, "0:16     1.0 s  ━━")
		screenHas(t, m, "0:01     7.0 s  the quick brown fox")
		if got := strings.Contains(m.View(), "at last"); got != high {
			t.Errorf("a high screen %v, the end of the words %v:\n%s", high, got, ansi.Strip(m.View()))
		}
	}
}

// TestLongTurnHasOneBar: the bar of a turn is not wrapped as words are.
func TestLongTurnHasOneBar(t *testing.T) {
	m := testModel(tuitest.State([]protocol.Turn{{Speaker: "SPEAKER_00", Start: 1, End: 181}}, 200, 1), 120, 60)
	if screen := ansi.Strip(m.View()); strings.Count(screen, " ━") != 1 || strings.Contains(screen, "━…") {
		t.Errorf("the bar is not one row:\n%s", screen)
	}
}

func TestListFindsAndCopiesWhatWasSaid(t *testing.T) {
	var out bytes.Buffer
	m := testModel(saidState(), 80, 24)
	m.o.Output = &out
	screenHas(t, m, "the quick brown", "t", "/", "Quick DOG", "enter")
	screenHasNot(t, m, "SPEAKER_01")
	if row := screenRows(m)[1]; !strings.HasSuffix(strings.TrimSpace(row), " 1") {
		t.Errorf("the title counts lines, not turns: %q", row)
	}
	want := base64.StdEncoding.EncodeToString([]byte("0:01.0 to 0:08.0  SPEAKER_00: " + strings.Repeat("the quick brown fox jumps over the lazy dog ", 4) + "at last\n"))
	for _, keys := range [][]string{{"y"}, {"up", "y"}} { // all rows; a line of the text
		out.Reset()
		runCommand(press(m, keys...))
		testkit.Contains(t, out.String(), want, keys, "copies")
		screenHas(t, m, "1 row sent")
	}
}

// A text that arrives late appears without an event of the service, at the latest a fifth
// of a second later.
func TestListShowsLateText(t *testing.T) {
	s := saidState()
	text := s.Timeline.Lanes[0].Turns[0].Text
	without := s
	without.Timeline.Lanes = slices.Clone(s.Timeline.Lanes)
	without.Timeline.Lanes[0].Turns = []protocol.Turn{{Speaker: "SPEAKER_00", Start: 1, End: 8}}
	m := testModel(without, 80, 24)
	screenHasNot(t, m, "the quick brown fox", "t")
	s.Timeline.Texts++
	m.later(s)
	screenHasNot(t, m, "the quick brown fox")
	m.tickLater()
	screenHas(t, m, "the quick brown fox")
	if got := ansi.Strip(m.View()); !strings.Contains(strings.Join(strings.Fields(got), " "), text) {
		t.Errorf("the text is not whole:\n%s", got)
	}
}

// TestSearchInAReplay: words are searched in all of the recording, and the results stay when the replay goes to one.
func TestSearchInAReplay(t *testing.T) {
	s, whole := tuitest.State([]protocol.Turn{{Speaker: "SPEAKER_00", Start: 1, End: 2, Text: "we begin"}}, 5, 1), saidState()
	s.Length, s.Playback = 20, &display.Playback{Paused: true, Speed: 1, Whole: func() protocol.Snapshot { return whole.Timeline }}
	m := testModel(s, 120, 34)
	p := &tuitest.Player{}
	m.o.Player = p
	m.bindKeys()
	screenHasNot(t, m, "SPEAKER_01", "t")
	screenHas(t, m, "SPEAKER_01", "/", "我们", "enter")
	screenHas(t, m, "SPEAKER_01 has not spoken yet: enter goes there", "home", "r")
	screenHas(t, m, "the replay has not come to this turn: enter goes there", ">")
	press(m, "enter")
	if len(p.Sought) != 1 || p.Sought[0] != 9 {
		t.Errorf("sought %v", p.Sought)
	}
	press(m, "esc", "esc", "esc") // the notice, the selection, the filter
	screenHasNot(t, m, "SPEAKER_01")
	screenHas(t, m, "we begin")
}

// TestSearchFromHere: the first match is that after the selected turn, or else after the position of a replay.
func TestSearchFromHere(t *testing.T) {
	var turns []protocol.Turn
	for i := range 100 {
		turns = append(turns, protocol.Turn{Speaker: "SPEAKER_00", Start: float64(10 * i), End: float64(10*i + 5), Text: "budget"})
	}
	whole := tuitest.State(turns, 1000, 1)
	s := tuitest.State(turns[:50], 501, 1)
	s.Length, s.Playback = 1000, &display.Playback{Paused: true, Speed: 1, Whole: func() protocol.Snapshot { return whole.Timeline }}
	m := testModel(s, 100, 24)
	selected := func(at float64, keys ...string) {
		t.Helper()
		press(m, keys...)
		if r, _ := m.selectedRow(); m.list.Selected == 0 || r.at != at || r.line > 0 {
			t.Errorf("selected is %v, line %d, want %v", r.at, r.line, at)
		}
	}
	selected(510, "t", "/", "bud", "enter")
	screenHas(t, m, "▌ 8:30")
	selected(520, "down")
	selected(500, "up", "up")
	selected(500, "1") // the turns of that lane, all
	screenHas(t, m, "no turn matches", "esc", "esc", "t", "t", "/", "none", "enter")

	m = testModel(whole, 100, 24)
	selected(980, "t", "up", "up", "/", "bud", "enter")
	m.Update(tea.WindowSizeMsg{Width: 30, Height: 3})
	press(m, "home", "/", "enter")
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 24})
	screenHas(t, m, "▌ 0:00")
	press(m, "end", "/", "get", "enter") // live, the newest is followed
	if r, _ := m.selectedRow(); m.list.Selected != 0 || r.at != 990 {
		t.Errorf("selected is %v", r.at)
	}
}

// TestListSelectsTurns: not the lines of their words, which are on the screen as far as there is room.
func TestListSelectsTurns(t *testing.T) {
	long := strings.Repeat("the quick brown fox jumps over the lazy dog ", 8) + "at last"
	turns := []protocol.Turn{{Speaker: "SPEAKER_00", Start: 1, End: 2, Text: strings.Repeat(long, 9)}}
	for i := range 20 {
		turns = append(turns, protocol.Turn{Speaker: "SPEAKER_01", Start: float64(5 * (i + 1)), End: float64(5*i + 8), Text: long})
	}
	m := testModel(tuitest.State(turns, 200, 1), 80, 24)
	press(m, "t")
	for i := len(turns) - 1; i >= 0; i-- {
		press(m, "up")
		if r, _ := m.selectedRow(); r.at != turns[i].Start || r.line > 0 {
			t.Fatalf("selected is the turn at %v, line %d, want that at %v", r.at, r.line, turns[i].Start)
		}
	}
	press(m, "up", "pgdown") // through the text of a turn that is longer than the screen
	if r, _ := m.selectedRow(); r.at != 1 || r.line == 0 {
		t.Errorf("a page goes to the turn at %v, line %d", r.at, r.line)
	}
	press(m, "home")
	for _, turn := range turns[1:] {
		press(m, "down")
		if r, _ := m.selectedRow(); r.at != turn.Start || r.line > 0 {
			t.Fatalf("selected is the turn at %v, line %d, want that at %v", r.at, r.line, turn.Start)
		}
		rows := screenRows(m)
		i := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "▌") })
		if text := strings.Join(rows[i:len(rows)-2], " "); !strings.Contains(text, "at last") {
			t.Fatalf("the text of the turn at %v is not on the screen:\n%s", turn.Start, strings.Join(rows, "\n"))
		}
	}
	press(m, "down")
	testkit.Equal(t, m.list.Selected, 0, "after the newest, the list does not follow")
}
