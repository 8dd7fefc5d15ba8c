package tui

import (
	"errors"
	"math"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"hubbub/protocol"
)

// write presses the keys of a text.
func write(m *model, text string) {
	for _, r := range text {
		press(m, string(r))
	}
}

func TestNamingAPerson(t *testing.T) {
	m := still(sessionAt(talkOf4, 100, 1), 100, 30)
	press(m, "2", "r")
	write(m, "qx李雷") // letters that are keys otherwise
	press(m, "left", "left", "backspace", "end", "enter")
	screenHas(t, m, "q李雷")
	screenHasNot(t, m, "SPEAKER_01")
	if a, _ := m.store.Load(); a.Name("SPEAKER_01") != "q李雷" {
		t.Errorf("the name is %q", a.Name("SPEAKER_01"))
	}
	press(m, "r", "esc")
	screenHas(t, m, "q李雷")
	press(m, "3", "r")
	write(m, "q李雷")
	press(m, "enter")
	screenHas(t, m, "the name is in use")
	press(m, "u")
	screenHas(t, m, "undone: the name q李雷")
	screenHas(t, m, "SPEAKER_01")
	press(m, "u")
	screenHas(t, m, "nothing to undo")
}

func TestNamingAsksWhom(t *testing.T) {
	m := still(sessionAt(talkOf4, 100, 1), 100, 30)
	press(m, "r")
	screenHas(t, m, "or 1-4")
	press(m, "3")
	screenHas(t, m, "name of SPEAKER_02:")
	press(m, "esc")
	// Keys that come together: the rest is the name.
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("rAnna")})
	press(m, "enter")
	screenHas(t, m, "Anna")
	press(m, "r")
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(" von\nB\x1b[2J"), Paste: true})
	press(m, "enter")
	screenHas(t, m, "Anna von B[2J")
}

func TestMergingLanes(t *testing.T) {
	s := sessionAt(talkOf4, 100, 1)
	m := still(s, 100, 30)
	press(m, "4", "m")
	screenHas(t, m, "merge SPEAKER_03 into SPEAKER_02?")
	press(m, "up", "up", "enter")
	b := m.board()
	if len(b.people) != 3 || b.index("SPEAKER_03") != 0 || m.selected != "SPEAKER_00" {
		t.Fatalf("people %+v, selected %s", b.people, m.selected)
	}
	if got, want := b.people[0].talk, talk(s.Timeline.Lanes[0], s)+talk(s.Timeline.Lanes[3], s); got > want+1e-9 || got < want-5 {
		t.Errorf("together they talked %v s, apart %v s", got, want)
	}
	if b.people[2].role != laneRole(2) {
		t.Errorf("after a merge the third speaker's colour is %v", b.people[2].role)
	}
	press(m, "u")
	if n := len(m.board().people); n != 4 {
		t.Errorf("after undo there are %d people", n)
	}
	screenHas(t, m, "undone: merge of SPEAKER_03 into SPEAKER_00")
}

func TestSharesLeaveOutTheMuted(t *testing.T) {
	m := still(sessionAt(talkOf4, 100, 1), 100, 30)
	sum := func() (sum float64, muted int) {
		for _, p := range m.board().people {
			sum += p.share
			if p.muted {
				muted++
			}
		}
		return sum, muted
	}
	for _, c := range []struct {
		keys  []string
		muted int
	}{{nil, 0}, {[]string{"2", "x"}, 1}, {[]string{"x"}, 0}, {[]string{"3", "o"}, 3}, {[]string{"1", "o"}, 3}, {[]string{"o"}, 0}} {
		press(m, c.keys...)
		if s, n := sum(); n != c.muted || math.Abs(s-1) > 1e-9 {
			t.Errorf("%v: %d muted, the shares' sum is %v", c.keys, n, s)
		}
	}
}

func TestSortedByTalkTime(t *testing.T) {
	m := still(sessionAt(talkOf4, 100, 1), 100, 30)
	colour := map[string]role{}
	for _, p := range m.board().people {
		colour[p.root] = p.role
	}
	press(m, "s")
	b := m.board()
	for i, l := range b.Timeline.Lanes {
		if i > 0 && l.Talk > b.Timeline.Lanes[i-1].Talk {
			t.Errorf("lane %d talked more than the one above", i)
		}
		if p := b.people[i]; p.role != colour[p.root] || p.name != l.Speaker {
			t.Errorf("lane %d is %s's in colour %v, belongs to %s", i, p.name, p.role, l.Speaker)
		}
	}
}

func TestBookmarks(t *testing.T) {
	m := still(sessionAt(talkOf4, 300, 1), 100, 40)
	press(m, "b")
	screenHas(t, m, "bookmark 5:00, note:")
	m.later(sessionAt(talkOf4, 320, 1)) // writing takes its time
	write(m, "budget?")
	press(m, "enter")
	press(m, "home", "b", "enter", "end")
	a, _ := m.store.Load()
	k := a.Bookmarks()
	if len(k) != 2 || k[1] != (protocol.Bookmark{At: 300, Note: "budget?"}) || k[0].At < 25 || k[0].At > 35 {
		t.Fatalf("bookmarks %+v", k)
	}
	screenHas(t, m, "◆ bookmark")
	press(m, "[")
	screenHas(t, m, "◆ 5:00  budget?  (2 of 2")
	press(m, "[")
	screenHas(t, m, "(1 of 2")
	if w := m.window(); w.at(0) > k[0].At || w.at(w.cells) < k[0].At {
		t.Errorf("the window is at %v, the bookmark at %v", w.at(0), k[0].At)
	}
	press(m, "[")
	screenHas(t, m, "no bookmark before this")
	press(m, "]")
	screenHas(t, m, "(2 of 2")
	press(m, "B", "u", "]", "[", "B")
	if a, _ := m.store.Load(); len(a.Bookmarks()) != 1 {
		t.Errorf("bookmarks %+v", a.Bookmarks())
	}
}

func TestLeavingAsksForWhatIsNotKept(t *testing.T) {
	m := still(sessionAt(talkOf4, 60, 1), 100, 30)
	press(m, "b", "enter")
	if cmd := press(m, "q"); cmd != nil && cmd() != nil {
		t.Fatal("q leaves, and the bookmark is lost")
	}
	screenHas(t, m, "q again leaves")
	press(m, "+") // something else: q asks again
	if cmd := press(m, "q"); cmd != nil && cmd() != nil {
		t.Fatal("q leaves without asking again")
	}
	if cmd := press(m, "q"); cmd == nil || cmd() == nil {
		t.Error("q twice does not leave")
	}
	m = still(sessionAt(talkOf4, 60, 1), 100, 30)
	press(m, "b", "enter")
	_, revision := m.store.Load()
	m.store.MarkSaved(revision)
	if cmd := press(m, "q"); cmd == nil || cmd() == nil {
		t.Error("q asks for what is kept")
	}
}

func TestExportFromTheScreen(t *testing.T) {
	m := still(sessionAt(talkOf4, 60, 1), 120, 30)
	press(m, "e")
	screenHasNot(t, m, "exporting") // there is none
	var got protocol.Annotations
	fail := errors.New("no room on the disk")
	m = newModel(m.ctx, Options{Snapshot: m.o.Snapshot, Export: func(a protocol.Annotations) (string, error) { got = a; return "wrote x.html", fail }}, m.theme, m.glyphs)
	m.refresh()
	press(m, "b", "enter")
	cmd := press(m, "e")
	screenHas(t, m, "exporting")
	if press(m, "e"); !m.exporting {
		t.Error("two exports at once")
	}
	m.Update(runBatch(cmd))
	screenHas(t, m, "no room on the disk")
	if !m.store.Unsaved() || len(got.Bookmarks()) != 1 {
		t.Errorf("exported %+v, unsaved %v", got, m.store.Unsaved())
	}
	fail = nil
	m.Update(runBatch(press(m, "e")))
	screenHas(t, m, "wrote x.html")
	if m.store.Unsaved() {
		t.Error("exported, but not kept")
	}
}

// runBatch runs a command, or the only one of a batch, to its message.
func runBatch(cmd tea.Cmd) tea.Msg {
	msg := cmd()
	if batch, ok := msg.(tea.BatchMsg); ok {
		return batch[0]()
	}
	return msg
}

func TestMouse(t *testing.T) {
	s := sessionAt(talkOf4, 300, 1)
	s.Timeline.Lanes[1].Turns = append([]protocol.Turn(nil), s.Timeline.Lanes[1].Turns...)
	m := still(s, 100, 30)
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
	click(l.timelineX()+w.column((turn.Start+turn.End)/2), l.lanesY+lane*l.pitch, tea.MouseButtonLeft, tea.MouseActionPress)
	screenHas(t, m, "SPEAKER_02  "+tenths(turn.Start)+" to "+tenths(turn.End))
	if m.selected != "SPEAKER_02" {
		t.Errorf("selected is %q", m.selected)
	}
	click(0, 0, tea.MouseButtonWheelUp, tea.MouseActionPress)
	if m.window().follow {
		t.Error("the wheel does not scroll")
	}
	before := m.view
	click(50, 10, tea.MouseButtonLeft, tea.MouseActionMotion)
	if m.view != before {
		t.Error("dragging does something")
	}
	click(l.timelineX(), l.mapY, tea.MouseButtonLeft, tea.MouseActionPress)
	if w := m.window(); w.at(0) > w.cellDur {
		t.Errorf("a click at the minimap's start goes to %v", w.at(0))
	}
	press(m, "M")
	screenHas(t, m, "mouse on")
}

func TestKeysOfPlaying(t *testing.T) {
	p := &fakePlayer{}
	s := sessionAt(talkOf4, 300, 1)
	s.Playback = &Playback{Paused: true, Speed: 2}
	m := newModel(t.Context(), Options{Snapshot: func() State { return s }, Player: p}, newTheme(0, true, false), glyphsFor(false, false))
	m.refresh()
	screenHas(t, m, "PAUSED")
	press(m, "p", ",", ".", ">", "<", ">")
	if p.toggled != 1 || p.speed != 1 || len(p.sought) != 2 || p.sought[0] != 290 || p.sought[1] != 310 {
		t.Errorf("%+v", p)
	}
	s.Playback = &Playback{Speed: 2}
	m.refresh()
	screenHas(t, m, "2x")
}

func TestStageShowsWhoSpeaks(t *testing.T) {
	for _, name := range []string{"Anna", "李雷", "Çağla Öz", "Вера", "نورا"} {
		for _, size := range [][2]int{{40, 8}, {80, 24}, {120, 34}} {
			s := sessionAt(talkOf4, 60, 1)
			for i := range s.Timeline.Lanes {
				s.Timeline.Lanes[i].Open = i == 1
				s.Timeline.Lanes[i].OpenSince = 58
			}
			m := still(s, size[0], size[1])
			m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename("SPEAKER_01", name) })
			press(m, "f")
			v := ansi.Strip(m.View())
			if _, big := bigWord(name); big && size[0] >= 80 {
				if n := strings.Count(v, "█") + strings.Count(v, "▀") + strings.Count(v, "▄"); n < 100 {
					t.Errorf("%s, %v: %d cells are lit:\n%s", name, size, n, v)
				}
			}
			if !strings.Contains(v, name+" ") && !strings.Contains(v, name+"\n") {
				t.Errorf("%s, %v: the name is not there:\n%s", name, size, v)
			}
			press(m, "esc")
			screenHas(t, m, "across")
		}
	}
}

func TestBigLettersAreAllThere(t *testing.T) {
	for _, r := range "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.'ÄÖÜÉÈÇÑÅŠŽŁĞİŞАБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ" {
		if _, ok := bigWord(string(r)); !ok && !strings.ContainsRune("ÇŞŁ", r) {
			t.Errorf("%q is not in the font", r)
		}
	}
	seen := map[bigLetter]rune{}
	for r, l := range bigLetters {
		if other, twice := seen[l]; twice && !strings.ContainsRune("БВГЗ", r) && !strings.ContainsRune("БВГЗ", other) {
			t.Errorf("%q and %q look the same", r, other)
		}
		seen[l] = r
	}
}

// The levels of a window are those of its seconds, whatever the zoom.
func TestLoudness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		levels := someLevels[:n]
		from := rapid.Float64Range(-5, 40).Draw(t, "from")
		to := from + rapid.Float64Range(0.01, 6).Draw(t, "length")
		got, ok := loudness(levels, from, to)
		// Chunks that lie within for sure, and those that may.
		var within, around Level
		quiet := float32(1)
		for i, l := range levels {
			if at := float64(i)/10 + 0.05; at > from-0.11 && at < to+0.11 {
				around.RMS, around.Peak, quiet = max(around.RMS, l.RMS), max(around.Peak, l.Peak), min(quiet, l.RMS)
				if at > from+0.06 && at < to-0.06 {
					within.Peak = max(within.Peak, l.Peak)
				}
			}
		}
		const hair = 1e-6
		if ok && (got.RMS < quiet-hair || got.RMS > around.RMS+hair || got.Peak < within.Peak || got.Peak > around.Peak) || !ok && within.Peak > 0 {
			t.Fatalf("%v to %v of %d: %v, want peaks of %v to %v and an RMS of %v to %v", from, to, n, got, within.Peak, around.Peak, quiet, around.RMS)
		}
	})
}

func TestHistory(t *testing.T) {
	var h History
	for _, seq := range []int64{0, 1, 4, 3, 5, 9} {
		h.Add(seq, Level{RMS: float32(seq) + 1})
	}
	before := h.Gaps()
	h.Gap(Span{0.85, 1.2})
	if got := h.Levels(); len(got) != 10 || got[4].RMS != 5 || got[3].RMS != 0 || got[9].RMS != 10 {
		t.Errorf("levels %v", got)
	}
	if got := h.Gaps(); len(got) != 2 || got[0] != (Span{0.2, 0.4}) || got[1] != (Span{0.6, 1.2}) {
		t.Errorf("gaps %v", got)
	}
	if before[1] != (Span{0.6, 0.9}) {
		t.Errorf("a snapshot changed: %v", before)
	}
}

func TestMinimapShowsWhereSpeechWas(t *testing.T) {
	s := State{Heard: 100, Sent: 100, Link: Open, Length: 100, Timeline: protocol.Snapshot{Decided: 98, Lanes: []protocol.Lane{
		{Speaker: "A", Turns: []protocol.Turn{{Speaker: "A", Start: 0, End: 20}}, Talk: 20},
		{Speaker: "B", Turns: []protocol.Turn{{Speaker: "B", Start: 15, End: 50}}, Talk: 35},
	}}}
	m := still(s, 124, 34)
	cells := m.survey(m.board(), 100)
	for i, want := range map[int]mapCell{0: {8, laneRole(0)}, 14: {8, laneRole(0)}, 30: {8, laneRole(1)}, 49: {8, laneRole(1)}, 50: {}, 99: {}} {
		if cells[i] != want {
			t.Errorf("cell %d is %+v, want %+v", i, cells[i], want)
		}
	}
}

func TestMinimapFollowsAnOpenTurn(t *testing.T) {
	s := State{Heard: 10, Sent: 10, Link: Open, Length: 100, Timeline: protocol.Snapshot{Decided: 5, Lanes: []protocol.Lane{
		{Speaker: "A", Open: true, OpenSince: 5},
	}}}
	m := still(s, 124, 34)
	if cells := m.survey(m.board(), 100); cells[8].height != 8 || cells[20].height != 0 {
		t.Errorf("at 10 s: %+v", cells[:25])
	}
	s.Heard, s.Sent = 30, 30
	m.later(s)
	if cells := m.survey(m.board(), 100); cells[20].height != 8 {
		t.Errorf("at 30 s: %+v", cells[:35])
	}
}

// A gap of a tenth of a second is seen at any zoom.
func TestGapsAreSeen(t *testing.T) {
	s := sessionAt(talkOf4, 3000, 1)
	s.Gaps = []Span{{2990, 2990.1}}
	for range 12 {
		m := still(s, 100, 24)
		press(m, "-")
		screenHas(t, m, "╳")
	}
}

func TestOverlapIsMarkedOnTheRule(t *testing.T) {
	s := State{Heard: 20, Sent: 20, Link: Open, Timeline: protocol.Snapshot{Decided: 18, Lanes: []protocol.Lane{
		{Speaker: "A", Turns: []protocol.Turn{{Speaker: "A", Start: 2, End: 10}}, Talk: 8},
		{Speaker: "B", Turns: []protocol.Turn{{Speaker: "B", Start: 6, End: 14}}, Talk: 8},
	}}}
	m := still(s, 80, 24)
	l, w := m.layout(), m.window()
	row := []rune(rows(m)[l.axisY])
	for at, want := range map[float64]bool{4: false, 8: true, 12: false} {
		if got := string(row[l.timelineX()+w.column(at)]) == "━"; got != want {
			t.Errorf("at %v s overlap is marked: %v", at, got)
		}
	}
	press(m, "1", "x")
	if strings.Contains(rows(m)[l.axisY], "━") {
		t.Error("who is muted overlaps")
	}
}
