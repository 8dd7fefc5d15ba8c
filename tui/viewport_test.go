package tui

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestPresentIsInTheLastColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		heard := rapid.Float64Range(0, 40000).Draw(t, "heard")
		cells := rapid.IntRange(1, 240).Draw(t, "cells")
		v := viewport{zoom: rapid.IntRange(0, wholeSession-1).Draw(t, "zoom"), chosen: rapid.Bool().Draw(t, "chosen")}
		w := v.window(cells, heard)
		if !w.follow || w.column(heard) != cells-1 {
			t.Fatalf("heard %v is in column %d of %d", heard, w.column(heard), cells)
		}
	})
}

func TestWholeSessionShowsAllAndLittleElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		heard := rapid.Float64Range(20, 100000).Draw(t, "heard")
		w := viewport{zoom: wholeSession, chosen: true}.window(100, heard)
		if w.first != 0 || w.column(heard) < 85 || w.column(heard) > 99 {
			t.Fatalf("heard %v: first column %d, present in column %d of 100", heard, w.first, w.column(heard))
		}
	})
}

func TestScrollingStaysInTheSession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		heard := rapid.Float64Range(0, 5000).Draw(t, "heard")
		cells := rapid.IntRange(1, 200).Draw(t, "cells")
		v := viewport{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			heard += rapid.Float64Range(0, 3).Draw(t, "later")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				w := v.window(cells, heard)
				v.scroll(w, -w.span*rapid.Float64Range(0, 2).Draw(t, "back"))
			case 1:
				w := v.window(cells, heard)
				v.scroll(w, w.span*rapid.Float64Range(0, 2).Draw(t, "on"))
			case 2:
				v.zoomBy(cells, heard, 1)
			case 3:
				v.zoomBy(cells, heard, -1)
			}
			w := v.window(cells, heard)
			if right := w.at(w.cells); !w.follow && right > heard+w.cellDur {
				t.Fatalf("the window ends at %v, after what was heard, %v", right, heard)
			}
			if right := w.at(w.cells); right < min(w.earliest(), heard)-w.cellDur {
				t.Fatalf("the window ends at %v, before it can be full, at %v", right, w.earliest())
			}
			if w.cellDur <= 0 || math.IsNaN(w.cellDur) {
				t.Fatalf("a cell lasts %v", w.cellDur)
			}
		}
	})
}

func TestZoomKeepsTheMiddleWhenScrolledBack(t *testing.T) {
	v := viewport{zoom: 4, chosen: true} // 60 s
	w := v.window(100, 1000)
	v.to(w, 530) // 470 to 530
	v.zoomBy(100, 1000, -1)
	w = v.window(100, 1000)
	if mid := (w.at(0) + w.at(100)) / 2; math.Abs(mid-500) > 2*w.cellDur {
		t.Errorf("the middle went from 500 s to %v s", mid)
	}
	if w.span != 30 {
		t.Errorf("60 s became %v s", w.span)
	}
}

func TestTicksAreRoundAndHaveRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		heard := rapid.Float64Range(0, 90000).Draw(t, "heard")
		v := viewport{zoom: rapid.IntRange(0, wholeSession).Draw(t, "zoom"), chosen: true}
		w := v.window(rapid.IntRange(20, 220).Draw(t, "cells"), heard)
		last, lastAt := -1000, math.Inf(-1)
		step := w.tickStep()
		w.ticks(func(col int, at float64) {
			if col < 0 || col >= w.cells || at < 0 {
				t.Fatalf("a tick at column %d, %v s", col, at)
			}
			if math.Abs(math.Mod(at+step/2, step)-step/2) > 1e-6 {
				t.Fatalf("a tick at %v s, step %v", at, step)
			}
			if lastAt >= 0 && col-last <= len(clock(at)) && step < tickSteps[len(tickSteps)-1] {
				t.Fatalf("ticks in columns %d and %d have no room for %s", last, col, clock(at))
			}
			last, lastAt = col, at
		})
	})
}

func TestTickStepsByZoom(t *testing.T) {
	for _, c := range []struct{ span, step float64 }{{5, 1}, {10, 1}, {20, 2}, {30, 5}, {60, 10}, {120, 15}, {300, 30}, {600, 60}, {1800, 300}, {3600, 600}} {
		zoom := -1
		for i, s := range spans {
			if s == c.span {
				zoom = i
			}
		}
		w := viewport{zoom: zoom, chosen: true}.window(100, 100)
		if got := w.tickStep(); got != c.step {
			t.Errorf("%v s across 100 columns: a tick every %v s, want %v s", c.span, got, c.step)
		}
	}
}
