package tui

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func TestNamingAPerson(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	press(m, "2", "r", "qx李雷") // letters that are keys otherwise
	screenHas(t, m, "q李雷", "left", "left", "backspace", "end", "enter")
	screenHasNot(t, m, "SPEAKER_01")
	if a, _ := m.annotations.Load(); a.Name("SPEAKER_01") != "q李雷" {
		t.Errorf("the name is %q", a.Name("SPEAKER_01"))
	}
	screenHas(t, m, "q李雷", "r", "esc")
	screenHas(t, m, "the name is in use", "3", "r", "q李雷", "enter")
	screenHas(t, m, "undone: name q李雷 of SPEAKER_01", "u")
	screenHas(t, m, "SPEAKER_01")
	screenHas(t, m, "nothing to undo", "u")
}

func TestNamingAsksWhom(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	screenHas(t, m, "or 1-4", "r")
	screenHas(t, m, "name of SPEAKER_02:", "3")
	press(m, "esc")
	// Keys that come together: the rest is the name.
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("rAnna")})
	screenHas(t, m, "Anna", "enter")
	press(m, "r")
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(" von\nB\x1b[2J"), Paste: true})
	screenHas(t, m, "Anna von B[2J", "enter")
}

// TestNameInsteadOfAnAnswer: who types the name at once names the proposed speaker. Nothing of
// the name is lost, and a former name is replaced.
func TestNameInsteadOfAnAnswer(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	label := m.session().Current()
	for _, name := range []string{"Karl Quinn", "quinn", "李雷"} { // k and q are keys otherwise
		press(m, "esc", "esc", "r", name, "enter")
		if a, _ := m.annotations.Load(); a.Name(label) != name {
			t.Errorf("%q is typed, and %s is %q", name, label, a.Name(label))
		}
	}
	press(m, "esc", "esc", "r")
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("Anna Löwe"), Paste: true})
	screenHas(t, m, "name of 李雷: Anna Löwe")
}

func TestMergingLanes(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	before := m.session().Speakers
	screenHas(t, m, "merge SPEAKER_03 into SPEAKER_02?", "4", "m")
	screenHas(t, m, "merge SPEAKER_03 into SPEAKER_02?", "down", "down") // nobody is merged with themselves
	press(m, "up", "up", "enter")
	b := m.session()
	if len(b.Speakers) != 3 || b.Index("SPEAKER_03") != 0 || m.selected != "SPEAKER_00" {
		t.Fatalf("people %+v, selected %s", b.Speakers, m.selected)
	}
	if got, want := b.Speakers[0].TalkTime, before[0].TalkTime+before[3].TalkTime; got > want+1e-9 || got < want-5 {
		t.Errorf("together they talked %v s, apart %v s", got, want)
	}
	testkit.Equal(t, b.Speakers[2].Style, canvas.Speaker(2), "after a merge the third speaker's colour")
	press(m, "u")
	if n := len(m.session().Speakers); n != 4 {
		t.Errorf("after undo there are %d people", n)
	}
	screenHas(t, m, "undone: merge of SPEAKER_03 into SPEAKER_00")
}

// Solo shows one lane also when that one is muted, and the mute is back after it.
// Mute, solo and sort say what they did, and undo what it undid. The shares leave out the muted.
func TestMuteSoloSortConfirm(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	muted := func() (out []string, shares float64) {
		for _, p := range m.session().Speakers {
			shares += p.Share
			if p.Muted {
				out = append(out, p.Label)
			}
		}
		return out, shares
	}
	for _, c := range []struct {
		keys  []string
		says  string
		muted []string
	}{
		{[]string{"2", "x"}, "SPEAKER_01 is muted: not in the shares, u undoes it", []string{"SPEAKER_01"}},
		{[]string{"o"}, "only SPEAKER_01, o shows all lanes again", []string{"SPEAKER_00", "SPEAKER_02", "SPEAKER_03"}},
		{[]string{"1", "x"}, "SPEAKER_00 is muted, but only SPEAKER_01 counts until o", []string{"SPEAKER_00", "SPEAKER_02", "SPEAKER_03"}},
		{[]string{"2", "o"}, "all lanes again", []string{"SPEAKER_00", "SPEAKER_01"}},
		{[]string{"1", "x"}, "SPEAKER_00 is no longer muted, u undoes it", []string{"SPEAKER_01"}},
		{[]string{"u"}, "undone: unmute of SPEAKER_00", []string{"SPEAKER_00", "SPEAKER_01"}},
		{[]string{"s"}, "lanes sorted by talk time", nil},
		{[]string{"s"}, "lanes in order of first speech", nil},
	} {
		screenHas(t, m, c.says, c.keys...)
		if got, shares := muted(); c.muted != nil && !slices.Equal(got, c.muted) || math.Abs(shares-1) > 1e-9 {
			t.Errorf("after %v, %v are muted, and the shares' sum is %v", c.keys, got, shares)
		}
	}
}

// Undo names the bookmark and the name that it is about.
func TestUndoNamesWhatItUndid(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	screenHas(t, m, "undone: removal of the bookmark at 1:40", "b", "enter", "B", "u")
	screenHas(t, m, "undone: bookmark at 1:40", "u")
	screenHas(t, m, "undone: removal of the name A", "1", "r", "A", "enter", "r", "backspace", "enter", "u")
	screenHas(t, m, "undone: name A of SPEAKER_00", "u")
}

// One key joins a label that came with a new connection.
func TestJoinNewLabel(t *testing.T) {
	line := protocol.NewTimeline()
	at := 0.0
	for _, label := range []string{"SPEAKER_00", "SPEAKER_01", "SPEAKER_01#2", "SPEAKER_00#2"} {
		line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, at, label))
		line.Apply(protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, at+2, label))
		at += 2
	}
	s := display.State{Timeline: line.Snapshot(), Position: at, Sent: at, Conn: display.Open}
	m := testModel(s, 110, 30)
	press(m, "J")
	if m.choice != nil || !strings.Contains(m.notice, "no label of a new connection") {
		t.Errorf("J with nothing to join: %q", m.notice)
	}
	s.NewLabels = []string{"SPEAKER_01#2", "SPEAKER_00#2"}
	m.later(s)
	press(m, "J")
	if m.choice == nil || m.selected != "SPEAKER_01" {
		t.Fatalf("J proposes %q", m.selected)
	}
	testkit.Equal(t, m.choice.prompt("SPEAKER_01"), "SPEAKER_01#2 came after the reconnection: is it SPEAKER_01?", "J asks")
	press(m, "enter")
	a, _ := m.annotations.Load()
	testkit.Equal(t, a.Root("SPEAKER_01#2"), "SPEAKER_01", "merges", a.Merges())
	// The other one is somebody new.
	press(m, "J", "3")
	a, _ = m.annotations.Load()
	if m.choice != nil || a.Root("SPEAKER_00#2") != "SPEAKER_00#2" || !strings.Contains(m.notice, "person of its own") {
		t.Errorf("merges %v, notice %q", a.Merges(), m.notice)
	}
	press(m, "J")
	if m.choice != nil {
		t.Error("J asks again")
	}
	press(m, "u")
	if a, _ = m.annotations.Load(); a.Root("SPEAKER_01#2") != "SPEAKER_01#2" {
		t.Error("u does not undo")
	}
}

// A bookmark where there is one keeps its note, to be edited.
func TestNoteOfABookmarkIsEdited(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 40)
	press(m, "home", "b", "budget", "enter", "end", "[", "b", "?", "enter")
	if a, _ := m.annotations.Load(); len(a.Bookmarks()) != 1 || a.Bookmarks()[0].Note != "budget?" {
		t.Errorf("bookmarks %+v", a.Bookmarks())
	}
	press(m, "u", "b", "enter")
	if a, _ := m.annotations.Load(); a.Bookmarks()[0].Note != "budget" {
		t.Errorf("bookmarks %+v", a.Bookmarks())
	}
}

func TestBookmarks(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 40)
	for _, key := range []string{"[", "B"} {
		screenHas(t, m, "no bookmarks yet: b sets one", key)
	}
	screenHas(t, m, "bookmark 5:00, note:", "b")
	m.later(tuitest.State(tuitest.FourSpeakers, 320, 1)) // writing takes its time
	press(m, "budget?", "enter", "home", "b", "enter", "end")
	a, _ := m.annotations.Load()
	k := a.Bookmarks()
	if len(k) != 2 || k[1] != (protocol.Bookmark{At: 300, Note: "budget?"}) || k[0].At < 25 || k[0].At > 35 {
		t.Fatalf("bookmarks %+v", k)
	}
	screenHas(t, m, "◆ bookmark")
	screenHas(t, m, "◆ 5:00  (2 of 2, B removes it)  budget?", "[")
	screenHas(t, m, "(1 of 2", "[")
	if w := m.window(); w.at(0) > k[0].At || w.at(w.cells) < k[0].At {
		t.Errorf("the window is at %v, the bookmark at %v", w.at(0), k[0].At)
	}
	screenHas(t, m, "no bookmark before this", "[")
	screenHas(t, m, "(2 of 2", "]")
	press(m, "B", "u", "]", "[", "B")
	if a, _ := m.annotations.Load(); len(a.Bookmarks()) != 1 {
		t.Errorf("bookmarks %+v", a.Bookmarks())
	}
}

// TestBookmarksOfAReplay: [ and ] count from the position of the replay, except just after a jump, and in a view that stands
// still from the cursor, which they move.
func TestBookmarksOfAReplay(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 65, 1)
	s.Playback = &display.Playback{Speed: 1}
	p := &tuitest.Player{}
	m := testModel(s, 100, 30)
	m.o.Player = p
	for _, at := range []float64{30, 60, 120} {
		m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(at, "") })
	}
	at := func(position float64, key string, want float64) {
		t.Helper()
		s.Position = position
		m.later(s)
		press(m, key)
		if n := len(p.Sought); n == 0 || p.Sought[n-1] != want {
			t.Errorf("%s at %v goes to %v, want %v", key, position, p.Sought, want)
		}
	}
	at(65, "[", 60)
	at(62, "[", 30)
	at(40, "[", 30)
	at(64, "]", 120)

	m = testModel(tuitest.State(tuitest.FourSpeakers, 300, 1), 100, 30)
	m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(290, "budget") })
	screenHas(t, m, "bookmark 4:50, note: budget", "space", "left", "left", "[", "b")
}

func TestExportFromTheScreen(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 120, 30)
	screenHasNot(t, m, "exporting", "e") // there is none
	var got protocol.Annotations
	fail := errors.New("no room on the disk")
	m.o.Export = func(a protocol.Annotations) (string, error) { got = a; return "wrote x.html", fail }
	m.bindKeys()
	press(m, "b", "enter")
	cmd := press(m, "e")
	screenHas(t, m, "exporting")
	if press(m, "e") != nil {
		t.Error("two exports at once")
	}
	m.Update(runCommand(cmd))
	screenHas(t, m, "no room on the disk")
	if !m.annotations.Unsaved() || len(got.Bookmarks()) != 1 {
		t.Errorf("exported %+v, unsaved %v", got, m.annotations.Unsaved())
	}
	fail = nil
	m.Update(runCommand(press(m, "e")))
	screenHas(t, m, "wrote x.html")
	if m.annotations.Unsaved() {
		t.Error("exported, but not kept")
	}
}

// TestQuitWaitsForAnExport: q ends the screen when the files are complete, and not if they are not.
func TestQuitWaitsForAnExport(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 120, 30)
	var fail error
	m.o.Export = func(protocol.Annotations) (string, error) { return "wrote x.html", fail }
	m.bindKeys()
	press(m, "b", "enter")
	export := func(keys ...string) (quits bool) {
		cmd := press(m, "e")
		if press(m, keys...); m.quitting {
			t.Fatal("quits before the export has ended")
		}
		m.Update(runCommand(cmd))
		return m.quitting
	}
	fail = errors.New("no room on the disk")
	if export("q") {
		t.Error("quits although the export has failed")
	}
	screenHas(t, m, "no room on the disk")
	fail = nil
	for _, key := range []string{"+", ":"} {
		press(m, "b", "enter")
		if export("q", key) {
			t.Errorf("quits although %s was pressed", key)
		}
	}
	press(m, "esc", "b", "enter")
	if !export("q") {
		t.Error("does not quit after the export")
	}
}

// TestCancelledChoice: who was selected before the question is selected again.
func TestCancelledChoice(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	for _, key := range []string{"esc", "q"} {
		press(m, "1", "m", "down", key)
		if m.selected != "SPEAKER_00" {
			t.Errorf("after m and %s %q is selected", key, m.selected)
		}
	}
	press(m, "1", "m")
	before := m.selected
	if press(m, "down"); m.selected == before {
		t.Errorf("after down %q is still selected", before)
	}
	press(m, "esc", "esc", "r", "down", "esc")
	testkit.Equal(t, m.selected, "", "is selected")
}

// TestMergeIntoAnUnnamed: the message has the label, which the name then replaces.
func TestMergeIntoAnUnnamed(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	screenHas(t, m, "merged Anna into SPEAKER_02, u undoes it", "4", "r", "Anna", "enter", "m", "enter")
	screenHasNot(t, m, "merged Anna into Anna")
}

// TestRefusedMerge: the screen says that nothing was merged.
func TestRefusedMerge(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), 100, 30)
	a := protocol.Annotations{}
	for i := range 256 {
		a, _ = a.Merge(fmt.Sprintf("X%d", i), "X")
	}
	m.annotations = protocol.NewAnnotationsStore(a)
	screenHas(t, m, "more than 256 merges", "4", "m", "enter")
}
