package tui

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// Bubble Tea sends nothing to the terminal while the screen stays the same.
func TestScreenStaysTheSameWhenNothingChanges(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 60, 1)
	m := testModel(s, 80, 24)
	before := m.View()
	for range 100 {
		m.Update(tickMsg{})
		if m.View() != before {
			t.Fatal("the screen of an unchanged session changes")
		}
	}
	s.Dropped++
	m.later(s)
	screenHas(t, m, "1 dropped")
}

func TestMessagesAreShownForAWhile(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 80, 24)
	m.Update(Msg{Text: "Invalid chunk size\x1b[2J", Problem: true})
	screenHas(t, m, "Invalid chunk size")
	m.now = func() time.Time { return time.Unix(1_000_000, 0).Add(noticeTime + time.Second) }
	m.Update(tickMsg{})
	screenHasNot(t, m, "Invalid chunk size")
	screenHas(t, m, "q quit")
}

func TestMailboxWakesTheScreenBeforeItsTick(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 80, 24)
	next := tuitest.State(tuitest.FourSpeakers, 61, 1)
	m.o.Snapshot = func() display.State { return next }
	before := m.View()
	m.Update(Msg{})
	if m.View() == before {
		t.Error("the screen still shows the old state")
	}
}

func TestSizeZeroIsTheUsualSize(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 0, 0)
	if got := screenRows(m); len(got) != 24 {
		t.Errorf("a terminal of size 0x0 gets %d rows", len(got))
	}
}

func TestTinyScreensGetOneLine(t *testing.T) {
	for _, size := range [][2]int{{39, 24}, {80, 7}, {20, 1}} {
		m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), size[0], size[1])
		got := screenRows(m)
		if !strings.HasPrefix(got[0], "1:00") || strings.TrimSpace(strings.Join(got[1:], "")) != "" {
			t.Errorf("%v: %q", size, got)
		}
	}
}

// anyState draws a state that a broken service or device might lead to.
func anyState(t *rapid.T) display.State {
	number := rapid.OneOf(rapid.Float64Range(0, 100), rapid.Float64Range(0, 1e6), rapid.SampledFrom([]float64{0, -1, math.MaxInt32}))
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\x1b[2J", "李雷韩梅梅李雷韩梅梅", "a\nb", strings.Repeat("x", 300), "👩‍👩‍👧", "e\u0301\u0301"}))
	s := display.State{
		Position: number.Draw(t, "position"), Sent: number.Draw(t, "sent"), Length: number.Draw(t, "length"),
		Level:  display.Level{RMS: rapid.Float32().Draw(t, "rms"), Peak: rapid.SampledFrom([]float32{0, 0.5, 1, 7, float32(math.NaN()), float32(math.Inf(1))}).Draw(t, "peak")},
		Source: text.Draw(t, "source"), SourceNotice: text.Draw(t, "notice"), Server: text.Draw(t, "server"),
		Conn: display.ConnState(rapid.IntRange(0, 5).Draw(t, "link")), ConnReason: text.Draw(t, "reason"),
		ChunksSent: rapid.Int64().Draw(t, "chunks"), Dropped: rapid.Int64Range(0, 1e12).Draw(t, "dropped"), Overflows: rapid.Int64Range(0, 9).Draw(t, "overflows"),
		Ahead: time.Duration(rapid.Int64().Draw(t, "ahead")),
	}
	s.Timeline.Decided = number.Draw(t, "decided")
	s.Levels = tuitest.Levels[:rapid.IntRange(0, 1000).Draw(t, "levels")]
	for at := 0.0; rapid.Bool().Draw(t, "gap") && len(s.Gaps) < 5; {
		g := protocol.Span{Start: at + number.Draw(t, "gap start")}
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
		"r", "m", "u", "x", "o", "s", "f", "b", "[", "]", "B", "e", "M", "1", "5", "t", ">", "/", "y", ":", "tab", "enter", "esc", "李", "e\u0301", "backspace"}
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 250).Draw(t, "w"), rapid.IntRange(1, 80).Draw(t, "h")
		m := testModel(anyState(t), w, h)
		m.o.Export = noExport
		m.glyphs = canvas.NewGlyphs(rapid.Bool().Draw(t, "ascii"))
		for range rapid.IntRange(0, 6).Draw(t, "presses") {
			press(m, rapid.SampledFrom(keys).Draw(t, "key"))
			if rapid.Bool().Draw(t, "message") {
				m.Update(Msg{Text: rapid.String().Draw(t, "text"), Problem: true})
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
		for _, keys := range [][]string{nil, {"?"}, {"4", "m"}, {"w"}} {
			m := testModel(tuitest.State(tuitest.Turns(8, 200, 3), 190, 1), size[0], size[1])
			m.o.Wire, m.glyphs = tuitest.Log(false).Snapshot, canvas.NewGlyphs(true)
			m.bindKeys()
			press(m, keys...)
			for _, r := range ansi.Strip(m.View()) {
				if r > 0x7e {
					t.Fatalf("%v: %q (%U) on an ASCII screen", size, r, r)
				}
			}
		}
	}
}
