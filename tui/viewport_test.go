package tui

import (
	"math"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"pgregory.net/rapid"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

func TestPresentIsInTheLastColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		present := rapid.Float64Range(0, 40000).Draw(t, "present")
		cells := rapid.IntRange(1, 240).Draw(t, "cells")
		v := viewport{zoom: rapid.IntRange(0, wholeSession-1).Draw(t, "zoom"), zoomed: rapid.Bool().Draw(t, "chosen")}
		w := v.window(cells, present)
		if !w.follow || w.column(present) != cells-1 {
			t.Fatalf("present %v is in column %d of %d", present, w.column(present), cells)
		}
	})
}

func TestWholeSessionShowsAllAndLittleElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		present := rapid.Float64Range(20, 100000).Draw(t, "present")
		w := viewport{zoom: wholeSession, zoomed: true}.window(100, present)
		if w.first != 0 || w.column(present) < 85 || w.column(present) > 99 {
			t.Fatalf("present %v: first column %d, present in column %d of 100", present, w.first, w.column(present))
		}
	})
}

// TestViewOfALateService: the view that follows shows decided audio however late the service is. A bookmark is at the
// newest audio all the same.
func TestViewOfALateService(t *testing.T) {
	s := tuitest.State(tuitest.FourSpeakers, 300, 1)
	for _, sent := range []float64{300, 290, 280, 240, 60} {
		s.Sent, s.Timeline.Decided = sent, sent-1
		m := testModel(s, 80, 24)
		w, end := m.window(), min(300, sent-1+15)
		if !w.follow || w.span != 30 || w.column(end) != w.cells-1 {
			t.Errorf("decided until %v of 300 s: the view is %v to %v, want its end at %v", sent-1, w.at(0), w.end(), end)
		}
		press(m, "b", "enter")
		if k := m.session().Bookmarks; len(k) != 1 || k[0].At != 300 {
			t.Errorf("decided until %v of 300 s: the bookmark is %v", sent-1, k)
		}
		press(m, "right")
		if got := m.window(); got != w {
			t.Errorf("decided until %v of 300 s: right moves the view to %v", sent-1, got.at(0))
		}
		press(m, "left")
		if got := m.window(); got.follow || got.at(0) > w.at(0)-2.5 {
			t.Errorf("decided until %v of 300 s: left moves the view from %v to %v", sent-1, w.at(0), got.at(0))
		}
	}
	m := testModel(s, 80, 24)
	s.Conn = display.Closed
	m.later(s)
	if w := m.window(); w.column(300) != w.cells-1 {
		t.Errorf("at the end the view is %v to %v", w.at(0), w.end())
	}
}

func TestScrollingStaysInTheSession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		present := rapid.Float64Range(0, 5000).Draw(t, "present")
		cells := rapid.IntRange(1, 200).Draw(t, "cells")
		v := viewport{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			present += rapid.Float64Range(0, 3).Draw(t, "later")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				w := v.window(cells, present)
				v.scroll(w, -w.span*rapid.Float64Range(0, 2).Draw(t, "back"))
			case 1:
				w := v.window(cells, present)
				v.scroll(w, w.span*rapid.Float64Range(0, 2).Draw(t, "on"))
			case 2:
				w := v.window(cells, present)
				v.zoomBy(w, 1, w.middle())
			case 3:
				w := v.window(cells, present)
				v.zoomBy(w, -1, w.right)
			}
			w := v.window(cells, present)
			if right := w.at(w.cells); !w.follow && right > present+w.cellDur {
				t.Fatalf("the window ends at %v, after the present, %v", right, present)
			}
			if right := w.at(w.cells); right < min(w.earliest(), present)-w.cellDur {
				t.Fatalf("the window ends at %v, before it can be full, at %v", right, w.earliest())
			}
			if w.cellDur <= 0 || math.IsNaN(w.cellDur) {
				t.Fatalf("a cell lasts %v", w.cellDur)
			}
		}
	})
}

// A view that was scrolled back stays there when the width changes, and is full of the session; one of a replay also
// when that goes back before it.
func TestScrolledViewAtOtherWidthsAndPositions(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 600, 1), 80, 24)
	press(m, "home")
	m.Update(tea.WindowSizeMsg{Width: 300, Height: 24})
	if w := m.window(); w.first != 0 || w.follow {
		t.Errorf("the start in a wide window: it begins at %v", w.at(0))
	}
	press(m, "right")
	if w := m.window(); w.first <= 0 {
		t.Error("right does not scroll from there")
	}
	press(m, "home")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	press(m, "+", "shift+right", "right")
	before := m.View()
	m.Update(tea.WindowSizeMsg{Width: 400, Height: 24})
	screenHas(t, m, "BACK")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if got := m.View(); got != before {
		t.Errorf("another width and back changes\n%s\ninto\n%s", before, got)
	}

	s := tuitest.State(tuitest.FourSpeakers, 600, 1)
	s.Playback = &display.Playback{Speed: 1}
	m = testModel(s, 80, 24)
	press(m, "left", "left")
	s.Position = 300
	m.later(s)
	if w := m.window(); !w.follow || w.column(300) != w.cells-1 {
		t.Errorf("a replay at 300 s: the window ends at %v", w.end())
	}
	screenHasNot(t, m, "BACK")
}

func TestZoomKeepsTheMiddleWhenScrolledBack(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 1000, 1), 120, 24)
	press(m, "shift+left", "shift+left") // of 60 s
	before := m.window()
	press(m, "+")
	w := m.window()
	if w.span != 30 || math.Abs(w.middle()-before.middle()) > 2*w.cellDur {
		t.Errorf("the middle of %v s went from %v s to %v s", w.span, before.middle(), w.middle())
	}
	if press(m, "-"); m.window() != before {
		t.Errorf("zooming in and out leads from %v to %v", before, m.window())
	}
}

// A cursor that is set roughly is still there after zooming in to set it exactly.
func TestZoomKeepsTheCursor(t *testing.T) {
	m := testModel(tuitest.State(tuitest.FourSpeakers, 1000, 1), 120, 24)
	press(m, "space")
	for range 60 {
		press(m, "left")
	}
	at := m.cursor
	column, _ := m.cursorColumn(m.window())
	for range 5 {
		press(m, "+")
		if got, shown := m.cursorColumn(m.window()); m.cursor != at || !shown || got < column-1 || got > column+1 {
			t.Errorf("%v s across, the cursor is at %v in column %d, was at %v in column %d", m.window().span, m.cursor, got, at, column)
		}
	}
	press(m, "-", "-", "-")
	if got, _ := m.cursorColumn(m.window()); got < column-1 || got > column+1 {
		t.Errorf("%v s across, the cursor is in column %d, was in %d", m.window().span, got, column)
	}
}

func TestTicksAreRoundAndHaveRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		present := rapid.Float64Range(0, 90000).Draw(t, "present")
		v := viewport{zoom: rapid.IntRange(0, wholeSession).Draw(t, "zoom"), zoomed: true}
		w := v.window(rapid.IntRange(20, 220).Draw(t, "cells"), present)
		last, lastAt := -1000, math.Inf(-1)
		step := w.tickStep()
		w.ticks(func(col int, at float64) {
			if col < 0 || col >= w.cells || at < 0 {
				t.Fatalf("a tick at column %d, %v s", col, at)
			}
			if math.Abs(math.Mod(at+step/2, step)-step/2) > 1e-6 {
				t.Fatalf("a tick at %v s, step %v", at, step)
			}
			if lastAt >= 0 && col-last <= len(display.Clock(at)) && step < tickSteps[len(tickSteps)-1] {
				t.Fatalf("ticks in columns %d and %d have no room for %s", last, col, display.Clock(at))
			}
			last, lastAt = col, at
		})
	})
}

func TestTickStepsByZoom(t *testing.T) {
	for _, c := range []struct{ span, step float64 }{{5, 1}, {10, 1}, {20, 2}, {30, 5}, {60, 10}, {120, 15}, {300, 30}, {600, 60}, {1800, 300}, {3600, 600}} {
		zoom := -1
		for i, s := range zoomSpans {
			if s == c.span {
				zoom = i
			}
		}
		w := viewport{zoom: zoom, zoomed: true}.window(100, 100)
		if got := w.tickStep(); got != c.step {
			t.Errorf("%v s across 100 columns: a tick every %v s, want %v s", c.span, got, c.step)
		}
	}
}

// coverSlowly is coverSpeech without bisection and without shortcuts: each eighth
// of each cell by itself.
func coverSlowly(turns []protocol.Turn, first, cells int, cellDur float64) []uint8 {
	masks := make([]uint8, cells)
	sub := cellDur / canvas.Subcells
	for _, t := range turns {
		lo, hi := int(math.Round(t.Start/sub)), int(math.Round(t.End/sub))
		if hi <= lo {
			lo = int(t.Start / sub)
			hi = lo + 1
		}
		for k := range cells * canvas.Subcells {
			if at := first*canvas.Subcells + k; at >= lo && at < hi {
				masks[k/canvas.Subcells] |= 1 << (k % canvas.Subcells)
			}
		}
	}
	return masks
}

func drawTurns(t *rapid.T) []protocol.Turn {
	var turns []protocol.Turn
	at := 0.0
	for range rapid.IntRange(0, 40).Draw(t, "turns") {
		at += float64(rapid.IntRange(1, 4000).Draw(t, "gap ms")) / 1000
		start := at
		at += float64(rapid.IntRange(1, 9000).Draw(t, "length ms")) / 1000
		turns = append(turns, protocol.Turn{Speaker: "A", Start: start, End: at})
	}
	return turns
}

func TestCoverTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := drawTurns(t)
		cells := rapid.IntRange(1, 60).Draw(t, "cells")
		first := rapid.IntRange(-50, 200).Draw(t, "first")
		cellDur := rapid.Float64Range(0.02, 20).Draw(t, "cellDur")
		got := make([]uint8, cells)
		window{cells: cells, first: first, cellDur: cellDur}.coverSpeech(got, display.State{}, protocol.Lane{Turns: turns})
		// A turn that only rounding brings into the window may be missed, by
		// an eighth of a cell at either end.
		want := coverSlowly(turns, first, cells, cellDur)
		got[0] |= want[0] & 1
		got[cells-1] |= want[cells-1] & 0x80
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("cell %d of %d: %08b, want %08b", i, cells, got[i], want[i])
			}
		}
	})
}

// Turns that follow each other are no overlap, however many of them a cell has.
func TestOverlapIsMeasured(t *testing.T) {
	s := &display.Session{Speakers: make([]display.Speaker, 3)}
	add := func(who int, start, end float64) {
		s.Speakers[who].Turns = append(s.Speakers[who].Turns, protocol.Turn{Start: start, End: end})
	}
	for at := 0.0; at < 3600; at += 4 {
		add(int(at/4)%2, at, at+4)
	}
	add(0, 3600, 3700)
	add(1, 3610, 3640)
	add(2, 3630, 3660)
	s.Speakers[2].Open, s.Speakers[2].OpenSince = true, 3670
	s.Position, s.Timeline.Decided = 3690, 3690
	for _, muted := range []bool{false, true} {
		s.Speakers[2].Muted = muted
		got := window{cells: 90, first: 9, cellDur: 37, position: 3690}.overlap(s) // from 333 s to 3663 s
		for i, seconds := range got {
			want := 0.0
			if i == 88 { // from 3589 s to 3626 s
				want = 16
			}
			if i == 89 {
				want = map[bool]float64{false: 34, true: 14}[muted]
			}
			if math.Abs(seconds-want) > 1e-6 {
				t.Errorf("muted %v, cell %d: %.3f s of overlap, want %.3f", muted, i, seconds, want)
			}
		}
		all := window{cells: 1, cellDur: 3700, span: 3700, position: 3690}.overlap(s)
		if want := map[bool]float64{false: 70, true: 30}[muted]; math.Abs(all[0]-want) > 1e-6 {
			t.Errorf("muted %v: %.3f s of overlap in all, want %.0f", muted, all[0], want)
		}
	}
}
