package tui

import (
	"math"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"hubbub/protocol"
)

func TestFreezeStopsTheTimelineAndNothingElse(t *testing.T) {
	m := still(sessionAt(talkOf4, 100, 1), 100, 30)
	before := rows(m)
	press(m, "space")
	m.later(sessionAt(talkOf4, 130, 1))
	after := rows(m)
	for y := 2; y < 28; y++ {
		if before[y] != after[y] {
			t.Errorf("row %d moved while frozen:\n%s\n%s", y, before[y], after[y])
		}
	}
	screenHas(t, m, "FROZEN -0:30")
	screenHas(t, m, "1300 chunks sent") // the audio goes on
	press(m, "left")                    // scrolling in what is frozen
	screenHas(t, m, "FROZEN")
	press(m, "space")
	screenHasNot(t, m, "FROZEN")
	if w := m.window(); !w.follow || w.heard != 130 {
		t.Errorf("after the freeze the window is at %v, follow %v", w.heard, w.follow)
	}
}

func TestScrollingBackStandsStillWhileTheSessionGoesOn(t *testing.T) {
	m := still(sessionAt(talkOf4, 300, 1), 100, 30)
	press(m, "left")
	at := m.window().at(0)
	m.later(sessionAt(talkOf4, 400, 1))
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
	m := still(sessionAt(talkOf4, 300, 1), 100, 30)
	screenHas(t, m, "60 s across")
	press(m, "+")
	screenHas(t, m, "30 s across")
	press(m, "+", "+", "+", "+", "+", "+")
	screenHas(t, m, "5 s across")
	for range 20 {
		press(m, "-")
	}
	screenHas(t, m, "whole session")
	if w := m.window(); w.first != 0 {
		t.Errorf("the whole session begins in column %d", -w.first)
	}
	press(m, "+")
	screenHas(t, m, "60 min across")
}

func TestQuickKeysArriveTogether(t *testing.T) {
	m := still(sessionAt(talkOf4, 300, 1), 100, 30)
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("--")})
	screenHas(t, m, "5 min across")
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("++q"), Paste: true})
	screenHas(t, m, "5 min across")
	cmd := press(m, "??q")
	if cmd == nil {
		t.Fatal("q after other keys does nothing")
	}
	if _, ok := cmd().(tea.QuitMsg); !ok {
		t.Error("q after other keys does not quit")
	}
}

func TestSpeakersThatDoNotFitAreReached(t *testing.T) {
	m := still(sessionAt(conversation(8, 200, 3), 190, 1), 60, 9)
	screenHas(t, m, "SPEAKER_00")
	screenHasNot(t, m, "SPEAKER_07")
	screenHas(t, m, "↓ 3")
	press(m, "down", "down", "down", "down", "down", "down", "down", "down")
	screenHas(t, m, "SPEAKER_07")
	screenHas(t, m, "↑ 3")
	press(m, "up", "up", "up", "up", "up", "up", "up")
	screenHas(t, m, "SPEAKER_00")
}

func TestHelpNamesEveryKeyAtEverySize(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		for _, size := range [][2]int{{40, 8}, {80, 24}, {200, 50}, {45, 12}} {
			m := still(sessionAt(talkOf4, 60, 1), size[0], size[1])
			// With everything that a session can have.
			full := newModel(m.ctx, Options{Snapshot: m.o.Snapshot, Export: noExport, Player: &fakePlayer{}, Wire: noWire}, m.theme, glyphsFor(ascii, false))
			full.w, full.h = size[0], size[1]
			full.refresh()
			m = full
			text, pages := "", 0
			for press(m, "?"); m.help > 0; press(m, "?") {
				text += ansi.Strip(m.View())
				pages++
			}
			if pages > 4 {
				t.Errorf("%v: the help has %d pages", size, pages)
			}
			for _, b := range m.bindings {
				if b.help == "" || b.on == onWire {
					continue
				}
				want := b.help
				if size[1] < 20 {
					want = b.inShort()
				}
				if !strings.Contains(text, b.label(ascii)+" ") || !strings.Contains(text, want) {
					t.Errorf("%v, ascii %v: the help lacks %q, %q:\n%s", size, ascii, b.label(ascii), want, text)
				}
			}
			press(m, "?", "esc")
			screenHasNot(t, m, "suspend")
		}
	}
}

func TestEveryKeyIsBoundOnce(t *testing.T) {
	seen := map[string][]view{}
	for _, b := range newBindings() {
		for _, k := range b.keys {
			for _, on := range seen[k] {
				if on == b.on || on == anywhere || b.on == anywhere {
					t.Errorf("%q is bound twice", k)
				}
			}
			seen[k] = append(seen[k], b.on)
		}
	}
}

func TestLeaving(t *testing.T) {
	for _, c := range []struct {
		key         string
		interrupted bool
	}{{"q", false}, {"ctrl+c", true}} {
		calls := 0
		m := still(sessionAt(talkOf4, 60, 1), 80, 24)
		m.o.Interrupt = func() { calls++ }
		cmd := press(m, c.key)
		if cmd == nil {
			t.Fatalf("%s does nothing", c.key)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not quit", c.key)
		}
		press(m, c.key)
		if calls != 1 || m.interrupted != c.interrupted {
			t.Errorf("%s: Interrupt called %d times, interrupted %v", c.key, calls, m.interrupted)
		}
	}
}

func TestNothingIsDrawnWhenNothingChanges(t *testing.T) {
	s := sessionAt(talkOf4, 60, 1)
	m := still(s, 80, 24)
	m.View()
	before := m.drawn
	for range 100 {
		m.Update(tickMsg{})
		m.View()
	}
	if m.drawn != before {
		t.Errorf("an unchanged session was drawn %d times", m.drawn-before)
	}
	s.Dropped++
	m.later(s)
	m.View()
	if m.drawn != before+1 {
		t.Error("a dropped chunk was not drawn")
	}
}

func TestMessagesAreShownForAWhile(t *testing.T) {
	box := make(chan Msg, 1)
	m := still(sessionAt(talkOf4, 60, 1), 80, 24)
	m.o.Messages = box
	box <- Msg{Kind: MsgError, Text: "Invalid chunk size\x1b[2J"}
	_, again := m.Update(m.nextMessage())
	if again == nil {
		t.Fatal("the mailbox is read only once")
	}
	screenHas(t, m, "Invalid chunk size")
	m.now = func() time.Time { return time.Unix(1_000_000, 0).Add(noticeTime + time.Second) }
	m.Update(tickMsg{})
	screenHasNot(t, m, "Invalid chunk size")
	screenHas(t, m, "q leave")
	close(box)
	if msg := m.nextMessage(); msg != nil {
		t.Errorf("a closed mailbox gives %v", msg)
	}
}

func TestMailboxWakesTheScreenBeforeItsTick(t *testing.T) {
	m := still(sessionAt(talkOf4, 60, 1), 80, 24)
	next := sessionAt(talkOf4, 61, 1)
	m.o.Snapshot = func() State { return next }
	before := m.View()
	m.Update(Msg{Kind: MsgWake})
	if m.View() == before {
		t.Error("the screen still shows the old state")
	}
}

func TestStateLine(t *testing.T) {
	s := sessionAt(talkOf4, 60, 1)
	for _, c := range []struct {
		name   string
		change func(*State)
		want   string
	}{
		{"connected", func(s *State) {}, "● connected"},
		{"on time", func(s *State) { s.Ahead = -100 * time.Millisecond }, "real time"},
		{"behind", func(s *State) { s.Ahead = -1200 * time.Millisecond }, "1.2 s behind"},
		{"ahead", func(s *State) { s.Ahead = 75 * time.Second }, "1:15 ahead"},
		{"dropped", func(s *State) { s.Dropped = 7 }, " 7 dropped "},
		{"overflow", func(s *State) { s.Overflows = 1 }, "1 overflow"},
		{"connecting", func(s *State) { s.Link = Connecting }, "○ connecting"},
		{"failed", func(s *State) { s.Link, s.LinkReason = Failed, "connection refused" }, "× failed: connection refused"},
		{"finishing", func(s *State) { s.Link = Draining }, "○ finishing"},
		{"finished", func(s *State) { s.Link, s.Finished = Closed, true }, "■ finished · q to leave"},
		{"way", func(s *State) {}, "demo conversation → built-in server"},
		{"elapsed", func(s *State) { s.Started = time.Unix(1_000_000-61, 0) }, "1:01 elapsed"},
	} {
		x := s
		c.change(&x)
		m := still(x, 120, 24)
		if line := rows(m)[22]; !strings.Contains(line, c.want) {
			t.Errorf("%s: the state line is %q, want %q in it", c.name, line, c.want)
		}
	}
}

func TestElapsedStandsStillWhenFinished(t *testing.T) {
	s := sessionAt(talkOf4, 60, 1)
	s.Started = time.Unix(1_000_000-60, 0)
	m := still(s, 120, 24)
	s.Finished, s.Link = true, Closed
	m.now = func() time.Time { return time.Unix(1_000_600, 0) }
	m.later(s)
	screenHas(t, m, "1:00 elapsed")
}

// undecided counts hatched cells in a row.
func undecided(row string) int { return strings.Count(row, "░") + strings.Count(row, "▒") }

func TestUndecidedGrowsWhenAudioIsNotSent(t *testing.T) {
	s := sessionAt(talkOf4, 60, 1)
	s.Timeline.Lanes = s.Timeline.Lanes[:1]
	m := still(s, 100, 24)
	if n := undecided(rows(m)[2]); n < 1 || n > 3 {
		t.Errorf("a latency of 1 s hatches %d cells", n)
	}
	s.Sent, s.Timeline.Decided = 50, 49
	s.Timeline.Lanes[0].Open = false
	m = still(s, 100, 24)
	if n := undecided(rows(m)[2]); n < 10 {
		t.Errorf("10 s that wait to be sent hatch %d cells", n)
	}
	s.Finished = true
	m = still(s, 100, 24)
	if n := undecided(rows(m)[2]); n != 0 {
		t.Errorf("a finished session hatches %d cells", n)
	}
}

func TestOverlapIsTwoLanesAtOnce(t *testing.T) {
	s := State{Heard: 20, Sent: 20, Link: Open, Timeline: protocol.Snapshot{Decided: 18, Lanes: []protocol.Lane{
		{Speaker: "A", Turns: []protocol.Turn{{Speaker: "A", Start: 2, End: 10}}, Talk: 8},
		{Speaker: "B", Turns: []protocol.Turn{{Speaker: "B", Start: 6, End: 14}}, Talk: 8},
	}}}
	m := still(s, 80, 24)
	w, l := m.window(), m.layout()
	for i := range 2 {
		row := []rune(rows(m)[l.lanesY+i*l.pitch])
		if got := string(row[l.timelineX()+w.column(8)]); got != "█" {
			t.Errorf("at 8 s lane %d has %q", i, got)
		}
	}
}

func TestSpeakingIsMarked(t *testing.T) {
	s := sessionAt(talkOf4, 60, 1)
	m := still(s, 80, 24)
	l := m.layout()
	open := 0
	for i, lane := range s.Timeline.Lanes {
		marked := strings.Contains(rows(m)[l.lanesY+i*l.pitch][:8], "●")
		if marked != lane.Open {
			t.Errorf("%s: marked %v, open %v", lane.Speaker, marked, lane.Open)
		}
		if lane.Open {
			open++
		}
	}
	if open == 0 {
		t.Fatal("the test wants somebody to speak at 60 s")
	}
}

func TestSizeZeroIsTheUsualSize(t *testing.T) {
	m := still(sessionAt(talkOf4, 60, 1), 0, 0)
	if got := rows(m); len(got) != 24 {
		t.Errorf("a terminal of size 0x0 gets %d rows", len(got))
	}
}

func TestMeter(t *testing.T) {
	for _, c := range []struct {
		level Level
		want  string // of 14 cells
	}{
		{Level{}, "▕              ▏"},
		{Level{RMS: 1, Peak: 1}, "▕██████████████▏"},
		{Level{RMS: 0.0316228, Peak: 0.1}, "▕███████  │    ▏"}, // -30 and -20 dB
		{Level{RMS: float32(math.NaN()), Peak: float32(math.NaN())}, "▕              ▏"},
	} {
		s := sessionAt(talkOf4, 60, 1)
		s.Level = c.level
		m := still(s, 100, 24)
		if got := rows(m)[0]; !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q in it", c.level, got, c.want)
		}
	}
}

func TestPeakIsHeldForAMoment(t *testing.T) {
	s := sessionAt(talkOf4, 60, 1)
	s.Level = Level{RMS: 0.01, Peak: 0.5}
	m := still(s, 100, 24)
	s.Level, s.Heard = Level{RMS: 0.01, Peak: 0.02}, 61
	m.later(s)
	if m.peak != 0.5 {
		t.Errorf("after a second the peak is %v", m.peak)
	}
	s.Heard = 62
	m.later(s)
	if m.peak != 0.02 {
		t.Errorf("after two seconds the peak is %v", m.peak)
	}
}

func TestTinyScreensGetOneLine(t *testing.T) {
	for _, size := range [][2]int{{39, 24}, {80, 7}, {20, 1}} {
		m := still(sessionAt(talkOf4, 60, 1), size[0], size[1])
		got := rows(m)
		if !strings.HasPrefix(got[0], "1:00") || strings.TrimSpace(strings.Join(got[1:], "")) != "" {
			t.Errorf("%v: %q", size, got)
		}
	}
}

// anyState draws a state that a broken service or device might lead to.
func anyState(t *rapid.T) State {
	number := rapid.OneOf(rapid.Float64Range(0, 100), rapid.Float64Range(0, 1e6), rapid.SampledFrom([]float64{0, -1, math.MaxInt32}))
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\x1b[2J", "李雷韩梅梅李雷韩梅梅", "a\nb", strings.Repeat("x", 300), "👩‍👩‍👧", "e\u0301\u0301"}))
	s := State{
		Heard: number.Draw(t, "heard"), Sent: number.Draw(t, "sent"), Length: number.Draw(t, "length"),
		Level:  Level{RMS: rapid.Float32().Draw(t, "rms"), Peak: rapid.SampledFrom([]float32{0, 0.5, 1, 7, float32(math.NaN()), float32(math.Inf(1))}).Draw(t, "peak")},
		Source: text.Draw(t, "source"), SourceNotice: text.Draw(t, "notice"), Server: text.Draw(t, "server"),
		Link: LinkState(rapid.IntRange(-1, 5).Draw(t, "link")), LinkReason: text.Draw(t, "reason"),
		ChunksSent: rapid.Int64().Draw(t, "chunks"), Dropped: rapid.Int64Range(0, 1e12).Draw(t, "dropped"), Overflows: rapid.Int64Range(0, 9).Draw(t, "overflows"),
		Ahead: time.Duration(rapid.Int64().Draw(t, "ahead")), Finished: rapid.Bool().Draw(t, "finished"),
	}
	s.Timeline.Decided = number.Draw(t, "decided")
	s.Levels = someLevels[:rapid.IntRange(0, 1000).Draw(t, "levels")]
	for at := 0.0; rapid.Bool().Draw(t, "gap") && len(s.Gaps) < 5; {
		g := Span{at + number.Draw(t, "gap start"), 0}
		g.End = g.Start + number.Draw(t, "gap length")
		s.Gaps, at = append(s.Gaps, g), g.End
	}
	for range rapid.IntRange(0, 12).Draw(t, "lanes") {
		l := protocol.Lane{Speaker: text.Draw(t, "label"), Open: rapid.Bool().Draw(t, "open"), OpenSince: number.Draw(t, "since")}
		l.Turns = drawTurns(t)
		for _, x := range l.Turns {
			l.Talk += x.End - x.Start
		}
		s.Timeline.Lanes = append(s.Timeline.Lanes, l)
	}
	return s
}

func TestViewNeverExceedsItsTerminal(t *testing.T) {
	keys := []string{"?", "space", "left", "right", "home", "end", "+", "-", "up", "down", "shift+left",
		"r", "m", "u", "x", "o", "s", "f", "b", "[", "]", "B", "e", "M", "1", "5", "enter", "esc", "李", "e\u0301", "backspace"}
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 250).Draw(t, "w"), rapid.IntRange(1, 80).Draw(t, "h")
		m := still(anyState(t), w, h)
		m.o.Export = noExport
		m.glyphs = glyphsFor(rapid.Bool().Draw(t, "ascii"), rapid.Bool().Draw(t, "plain"))
		for range rapid.IntRange(0, 6).Draw(t, "presses") {
			press(m, rapid.SampledFrom(keys).Draw(t, "key"))
			if rapid.Bool().Draw(t, "message") {
				m.Update(Msg{Kind: MsgError, Text: rapid.String().Draw(t, "text")})
			}
			view := m.View()
			lines := strings.Split(view, "\n")
			if len(lines) != h {
				t.Fatalf("%d lines on a screen of %d", len(lines), h)
			}
			for y, line := range lines {
				if got := ansi.StringWidth(line); got > w {
					t.Fatalf("line %d is %d wide on a screen of %d: %q", y, got, w, line)
				}
				for _, r := range ansi.Strip(line) {
					if r < 0x20 || r >= 0x7f && r < 0xa0 {
						t.Fatalf("line %d has the control character %U", y, r)
					}
				}
			}
		}
	})
}

func TestAsciiScreenIsAscii(t *testing.T) {
	for _, size := range [][2]int{{40, 8}, {80, 24}, {120, 34}, {30, 5}} {
		for _, help := range []int{0, 1} {
			m := still(sessionAt(conversation(8, 200, 3), 190, 1), size[0], size[1])
			m.glyphs, m.help, m.dirty = glyphsFor(true, false), help, true
			for _, r := range ansi.Strip(m.View()) {
				if r > 0x7e {
					t.Fatalf("%v: %q (%U) on an ASCII screen", size, r, r)
				}
			}
		}
	}
}
