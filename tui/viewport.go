package tui

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// zoomSpans are the zoom levels: seconds across the timeline, whatever its
// width. After the last one comes the whole session.
var zoomSpans = []float64{5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}

// wholeSession is the zoom level after the last span.
var wholeSession = len(zoomSpans)

// viewport is which part of the session the timeline shows.
//
// Time is divided into cells at fixed positions of the capture clock: cell i
// covers i*cellDur to (i+1)*cellDur. Following the present moves the window by
// whole cells, so that what is drawn keeps its shape, and most ticks change one
// cell.
type viewport struct {
	zoom     int     // index in zoomSpans, or wholeSession; valid if zoomed
	zoomed   bool    // the user has zoomed; else the zoom depends on the width
	scrolled bool    // the right edge is anchor, else the present
	anchor   float64 // right edge in seconds
	top      int     // the first lane shown
}

// window is a viewport applied to a session and a width.
type window struct {
	cells    int     // columns
	cellDur  float64 // seconds per column
	first    int     // cell in column 0; negative = before the session
	span     float64 // cells * cellDur
	position float64 // the present, in seconds; of a late service, see windowOf
	right    float64 // position in the last column; of the whole session, the present
	follow   bool    // that is the present
}

func (v viewport) showsAll() bool { return v.zoomed && v.zoom >= wholeSession }

// defaultZoom is the first zoom that gives about half a second to a cell, at
// which a short "yes" is visible, and shows no less than the last 20 s.
func defaultZoom(cells int) int {
	i, _ := slices.BinarySearch(zoomSpans, max(0.5*float64(cells), 20))
	return min(i, len(zoomSpans)-1)
}

// wholeSpan is the span that shows a whole session: a little longer, in steps,
// because every change of the scale redraws everything.
func wholeSpan(position float64) float64 {
	if position <= 10 {
		return 10
	}
	step := math.Exp2(math.Floor(math.Log2(position / 16)))
	return math.Ceil(position/step+0.001) * step
}

// window applies the viewport to a width and the present position. It is full of the session, where
// there is enough: the width, or the position of a replay, can be another one than when it was scrolled.
func (v viewport) window(cells int, position float64) window {
	w := window{cells: cells, position: position, right: position, follow: true}
	zoom := v.zoom
	if !v.zoomed {
		zoom = defaultZoom(cells)
	}
	if zoom >= wholeSession {
		w.span = wholeSpan(position)
		w.cellDur = w.span / float64(cells)
		return w
	}
	w.span = zoomSpans[zoom]
	w.cellDur = w.span / float64(cells)
	if v.scrolled {
		w.right = min(max(v.anchor, w.earliest()), position)
		w.follow = !w.before(w.right)
	}
	w.first = int(math.Floor(w.right/w.cellDur+1e-9)) - cells + 1
	return w
}

// earliest is the lowest right edge that can be scrolled to.
func (w window) earliest() float64 { return min(w.span-w.cellDur, w.position) }

// before reports whether a right edge is before the present.
func (w window) before(right float64) bool { return right < w.position-w.cellDur/2 }

// scroll moves the right edge by seconds. Reaching the present follows it again.
func (v *viewport) scroll(w window, seconds float64) {
	if !v.showsAll() {
		v.scrollTo(w, w.right+seconds)
	}
}

// scrollTo moves the right edge to a position in seconds.
func (v *viewport) scrollTo(w window, right float64) {
	v.anchor = max(right, w.earliest())
	v.scrolled = w.before(v.anchor)
}

// zoomBy zooms a window in (-1) or out (+1), around a position that stays where it is.
func (v *viewport) zoomBy(w window, by int, around float64) {
	if !v.zoomed {
		v.zoom, v.zoomed = defaultZoom(w.cells), true
	}
	// Zooming out stops at the whole session, zooming in from there begins with
	// the longest span that is no longer than it.
	longest := sort.Search(wholeSession, func(i int) bool { return zoomSpans[i] > w.position })
	v.zoom = max(min(v.zoom, longest)+by, 0)
	if by > 0 && v.zoom >= longest {
		v.zoom = wholeSession
	}
	zoomed := v.window(w.cells, w.position)
	v.scrollTo(zoomed, around+(w.right-around)*zoomed.span/w.span)
}

// column is the column of a position in seconds; it may be outside the window.
func (w window) column(seconds float64) int {
	return int(math.Floor(seconds/w.cellDur+1e-9)) - w.first
}

// at is the position in seconds at which a column begins.
func (w window) at(column int) float64 { return float64(w.first+column) * w.cellDur }

// end and middle are positions in seconds.
func (w window) end() float64    { return w.at(w.cells) }
func (w window) middle() float64 { return w.at(0) + w.span/2 }

// undecided is how many cells, counted back from the present, are closer to the
// present than to the decided position. It is a number of cells and not a
// position, so that the hatched part moves together with the window and not half
// a cell later: each move redraws all lanes.
func (w window) undecided(s display.State) int {
	return int(math.Round((s.Position - s.DecidedUntil()) / w.cellDur))
}

// tickSteps are the possible distances between two ticks of the time axis, in
// seconds.
var tickSteps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400}

// tickStep is the smallest step with enough room for the labels.
func (w window) tickStep() float64 {
	room := 10.0 // cells for a label and the space around it
	if w.end() >= 3600 {
		room += 2
	}
	i, _ := slices.BinarySearch(tickSteps, room*w.cellDur)
	return tickSteps[min(i, len(tickSteps)-1)]
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

// gaps calls f with each column that a gap covers at least in part.
func (w window) gaps(gaps []protocol.Span, f func(column int)) {
	for i := sort.Search(len(gaps), func(i int) bool { return gaps[i].End > w.at(0) }); i < len(gaps) && gaps[i].Start < w.end(); i++ {
		last := int(math.Ceil(gaps[i].End/w.cellDur-1e-9)) - 1 - w.first
		for col := max(w.column(gaps[i].Start), 0); col <= min(last, w.cells-1); col++ {
			f(col)
		}
	}
}

// bookmarks calls f with the column of each bookmark in the window.
func (w window) bookmarks(bookmarks []protocol.Bookmark, f func(column int)) {
	for i := sort.Search(len(bookmarks), func(i int) bool { return w.column(bookmarks[i].At) >= 0 }); i < len(bookmarks); i++ {
		col := w.column(bookmarks[i].At)
		if col >= w.cells {
			return
		}
		f(col)
	}
}

// Coverage is one byte per cell of the window: which of its eighths are covered,
// bit 0 the leftmost.

// coverSpeech sets the coverage of a lane: its finished turns, and its open
// turn as far as it is decided.
func (w window) coverSpeech(cells []uint8, s display.State, lane protocol.Lane) {
	clear(cells)
	for _, t := range w.turns(lane.Turns) {
		w.cover(cells, t.Start, t.End)
	}
	if t, ok := w.openTurn(s, lane); ok {
		w.cover(cells, t.Start, t.End)
	}
}

// openTurn is the open turn of a lane, as far as it is decided and in the window.
func (w window) openTurn(s display.State, lane protocol.Lane) (t protocol.Span, ok bool) {
	end := s.DecidedUntil()
	if n := w.undecided(s); n > 0 {
		end = w.at(w.column(s.Position) + 1 - n)
	}
	return protocol.Span{Start: lane.OpenSince, End: end}, lane.Open && lane.OpenSince < min(end, w.end())
}

// turns are those of a lane that are in the window, found by bisection: there may be
// hours of turns before it.
func (w window) turns(all []protocol.Turn) []protocol.Turn {
	from := sort.Search(len(all), func(i int) bool { return all[i].End > w.at(0) })
	to := sort.Search(len(all), func(i int) bool { return all[i].Start >= w.end() })
	return all[from:max(from, to)]
}

// overlap is for how many seconds of each cell several speakers who are not muted spoke
// at once.
func (w window) overlap(s *display.Session) []float64 {
	var all []protocol.Span
	for _, p := range s.Speakers {
		if p.Muted {
			continue
		}
		for _, t := range w.turns(p.Turns) {
			all = append(all, protocol.Span{Start: t.Start, End: t.End})
		}
		if t, ok := w.openTurn(s.State, p.Lane); ok {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b protocol.Span) int { return cmp.Compare(a.Start, b.Start) })
	cells := make([]float64, w.cells)
	end, counted := 0.0, 0.0 // of the turns so far, and of what is in cells
	for _, t := range all {
		if from, to := max(t.Start, counted), min(t.End, end); from < to {
			addTalk(cells, from-w.at(0), to-w.at(0), w.cellDur)
			counted = to
		}
		end = max(end, t.End)
	}
	return cells
}

// cover adds a stretch in seconds. However short it is, it covers an eighth of a
// cell: every turn is visible.
func (w window) cover(cells []uint8, start, end float64) {
	step := w.cellDur / canvas.Subcells
	lo, hi := int(math.Round(start/step)), int(math.Round(end/step))
	if hi <= lo {
		lo = int(math.Floor(start / step))
		hi = lo + 1
	}
	base := w.first * canvas.Subcells
	lo, hi = max(lo-base, 0), min(hi-base, len(cells)*canvas.Subcells)
	for k := lo; k < hi; k++ {
		cells[k/canvas.Subcells] |= 1 << (k % canvas.Subcells)
	}
}
