package tui

import "math"

// spans are the zooms: seconds across the timeline, whatever its width. After
// the last one comes the whole session.
var spans = []float64{5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}

// wholeSession is the zoom after the last span.
var wholeSession = len(spans)

// viewport is which part of the session the timeline shows.
//
// Time is cut into cells that lie still on the stream clock: cell i covers
// i*cellDur to (i+1)*cellDur. Following the present moves the window by whole
// cells, so that what has been drawn does not shimmer, and most ticks of the
// clock change one cell.
type viewport struct {
	zoom   int     // index in spans, or wholeSession; used when chosen
	chosen bool    // the user has zoomed; else the zoom follows the width
	back   bool    // scrolled back: anchor counts, else the present
	anchor float64 // right edge in seconds
	top    int     // first lane shown
}

// window is a viewport laid over a session and a width.
type window struct {
	cells   int     // columns
	cellDur float64 // seconds a column
	first   int     // cell in column 0; negative = before the session
	span    float64 // cells * cellDur
	heard   float64
	follow  bool // the present is at the right edge
}

// autoZoom takes the first zoom that gives about half a second to a cell, at
// which a short "yes" can be seen, and no less than the last 20 s.
func autoZoom(cells int) int {
	for i, s := range spans {
		if s >= max(0.5*float64(cells), 20) {
			return i
		}
	}
	return len(spans) - 1
}

// wholeSpan is how much time the whole session is given: a little more than
// there is, in steps, because every change of the scale redraws everything.
func wholeSpan(heard float64) float64 {
	if heard <= 10 {
		return 10
	}
	step := math.Exp2(math.Floor(math.Log2(heard / 16)))
	return math.Ceil(heard/step+0.001) * step
}

func (v viewport) window(cells int, heard float64) window {
	cells = max(cells, 1)
	w := window{cells: cells, heard: heard}
	zoom := v.zoom
	if !v.chosen {
		zoom = autoZoom(cells)
	}
	if zoom >= wholeSession {
		w.span = wholeSpan(heard)
		w.cellDur = w.span / float64(cells)
		w.follow = true
		return w
	}
	w.span = spans[max(zoom, 0)]
	w.cellDur = w.span / float64(cells)
	right := heard
	if v.back {
		right = v.anchor
	} else {
		w.follow = true
	}
	w.first = int(math.Floor(right/w.cellDur+1e-9)) - cells + 1
	return w
}

// earliest is the least right edge that scrolling goes back to.
func (w window) earliest() float64 { return min(w.span-w.cellDur, w.heard) }

// scroll moves the right edge by so many seconds. Reaching the present is
// following it again.
func (v *viewport) scroll(w window, seconds float64) {
	if v.chosen && v.zoom >= wholeSession {
		return
	}
	right := w.heard
	if v.back {
		right = v.anchor
	}
	v.to(w, right+seconds)
}

func (v *viewport) to(w window, right float64) {
	right = max(right, w.earliest())
	v.back = right < w.heard-w.cellDur/2
	v.anchor = right
}

// zoomBy goes to a nearer (-1) or wider (+1) span. Following, the present
// stays where it is; scrolled back, the middle does.
func (v *viewport) zoomBy(cells int, heard float64, by int) {
	old := v.window(cells, heard)
	if !v.chosen {
		v.zoom, v.chosen = autoZoom(cells), true
	}
	v.zoom = min(max(v.zoom+by, 0), wholeSession)
	if v.back {
		w := v.window(cells, heard)
		v.to(w, v.anchor+(w.span-old.span)/2)
	}
}

// column is where a position in seconds lies; it may be outside the window.
func (w window) column(seconds float64) int {
	return int(math.Floor(seconds/w.cellDur+1e-9)) - w.first
}

// at is the position in seconds where a column begins.
func (w window) at(column int) float64 { return float64(w.first+column) * w.cellDur }

// tickSteps are the distances that a time axis may have between its ticks.
var tickSteps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400}

// tickStep is the smallest step whose labels have room.
func (w window) tickStep() float64 {
	const room = 10 // cells for a label and the space around it
	for _, s := range tickSteps {
		need := room
		if w.at(w.cells) >= 3600 {
			need += 2
		}
		if s/w.cellDur >= float64(need) {
			return s
		}
	}
	return tickSteps[len(tickSteps)-1]
}

// ticks calls f with the column and the position of every tick in the window.
func (w window) ticks(f func(column int, seconds float64)) {
	step := w.tickStep()
	for n := math.Ceil(max(w.at(0), 0)/step - 1e-9); ; n++ {
		col := w.column(n * step)
		if col >= w.cells {
			return
		}
		if col >= 0 {
			f(col, n*step)
		}
	}
}
