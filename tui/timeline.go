package tui

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The timeline: lanes, input level and time axis, on the same columns.
//
//	 ● SPEAKER_00  0:21   ▐█████▋      ▕███▎           ╱╱       ▐██▒▒   lane: name, talk time, turns
//	   6 turns      38%     ┊               ┊          ╱╱   ┊           its second row: turns, share
//	▌  Anna        0:09           ▐████▌       ┆       ╱╱           ░░  selected; bookmark; gap; undecided
//	   input level       ▁▂▄▅▃▂▁▄▅▆▅▃▁▂▄▅▄▃▂▁▁▂▄▅▆▅▄▃▂▁▂▄▅▃▂▁▂▃▄▂       input level
//	                    ───┬────━━━────────┬───◆───────╳╳──┬─────────   axis: overlap, bookmark, gap
//	   ↑ 2   ↓ 1 ●        0:10            0:20            0:30   0:42   labels; hidden lanes, one speaking

func (m *model) drawLanes(c *canvas.Canvas, l layout, w window, s *display.Session) {
	if len(s.Speakers) == 0 {
		m.drawNoSpeakers(c, l, s.State)
		m.drawUndecided(c, l, w, s.State, l.lanesY, nil, canvas.Plain)
		return
	}
	speech := make([]uint8, w.cells)
	for i, p := range s.Speakers {
		if i < m.view.top || i-m.view.top >= l.visible {
			continue
		}
		w.coverSpeech(speech, s.State, p.Lane)
		y := l.lanesY + (i-m.view.top)*l.pitch
		m.drawName(c, l, y, i, s)
		m.drawGrid(c, l, w, y, l.bar)
		m.drawGaps(c, l, w, s, y)
		style := p.Style
		if p.Muted {
			style = canvas.Faint
		}
		m.drawUndecided(c, l, w, s.State, y, &p.Lane, style)
		m.drawTurns(c, l, y, style, speech)
	}
}

// drawName draws the i-th speaker's part of the gutter.
func (m *model) drawName(c *canvas.Canvas, l layout, y, i int, s *display.Session) {
	p := s.Speakers[i]
	style, timeStyle := p.Style, canvas.Plain
	if p.Muted {
		style = canvas.Dim
	}
	if s.Speaking(p) {
		style, timeStyle = style.Bold(), timeStyle.Bold()
		c.Set(1, y, m.glyphs.Speaking, style)
	}
	if m.choice != nil && i < 9 { // the key that chooses this lane
		c.Set(1, y, strconv.Itoa(i+1), canvas.Brand.Bold())
	}
	if p.Recognised {
		c.Set(2, y, m.glyphs.Recognised, style)
	}
	nameStyle := style
	if s.Index(m.selected) == i {
		c.Fill(0, y, 1, l.bar, m.glyphs.Selected, canvas.Brand.Bold())
		nameStyle = style.Reverse()
	}
	c.Fitted(3, y, l.name, p.Name, 3, nameStyle)
	end := 3 + l.name + 1 + l.talk
	c.TextRight(end, y, display.TalkText(p.TalkTime), timeStyle)
	if l.pitch > 1 {
		share := fmt.Sprintf("%.0f%%", 100*p.Share)
		if p.Muted {
			share = "muted"
		}
		c.Text(3, y+1, l.name, display.Count(p.TurnCount, "turn"), canvas.Dim)
		c.TextRight(end, y+1, share, canvas.Dim)
	}
}

// drawGrid continues the ticks of the axis upwards.
func (m *model) drawGrid(c *canvas.Canvas, l layout, w window, y, rows int) {
	w.ticks(func(col int, _ float64) { c.Fill(l.gutter+col, y, 1, rows, m.glyphs.Grid, canvas.Faint) })
}

// drawGaps draws through a lane what belongs to no speaker: stretches whose
// speakers are unknown, and the lines of bookmarks.
func (m *model) drawGaps(c *canvas.Canvas, l layout, w window, s *display.Session, y int) {
	w.gaps(s.Gaps, func(col int) { c.Fill(l.gutter+col, y, 1, l.bar, m.glyphs.GapFill, canvas.Faint) })
	if m.glyphs.BookmarkLine != " " {
		w.bookmarks(s.Bookmarks, func(col int) { c.Fill(l.gutter+col, y, 1, l.bar, m.glyphs.BookmarkLine, canvas.Brand) })
	}
}

// drawTurns draws the covered part of each cell of a lane.
func (m *model) drawTurns(c *canvas.Canvas, l layout, y int, style canvas.Style, speech []uint8) {
	for i, covered := range speech {
		glyph, swapped := m.glyphs.Partial(covered)
		if glyph == "" {
			continue
		}
		cellStyle := style
		if swapped {
			cellStyle = style.Reverse()
		}
		c.Fill(l.gutter+i, y, 1, l.bar, glyph, cellStyle)
	}
}

// drawUndecided hatches what was captured and is not decided yet: in the colour
// of a lane whose turn is open, in grey for the others.
func (m *model) drawUndecided(c *canvas.Canvas, l layout, w window, s display.State, y int, lane *protocol.Lane, style canvas.Style) {
	last := w.column(s.Position)
	first := last + 1 - w.undecided(s)
	glyph, cellStyle := m.glyphs.Pending, canvas.Dim
	if lane != nil && lane.Open {
		first = max(first, w.column(lane.OpenSince))
		glyph, cellStyle = m.glyphs.PendingOpen, style
	}
	first, last = max(first, 0), min(last, w.cells-1)
	c.Fill(l.gutter+first, y, last+1-first, l.bar, glyph, cellStyle)
}

// drawNoSpeakers says what the screen is waiting for before anybody has spoken.
func (m *model) drawNoSpeakers(c *canvas.Canvas, l layout, s display.State) {
	text, style := "listening for the first voice", canvas.Dim
	switch {
	case s.Conn == display.Failed:
		text, style = "no connection", canvas.Bad
	case s.Finished():
		text = "nobody spoke"
	case s.Conn == display.Reconnecting:
		text = retryText(s)
	case s.Conn == display.Connecting:
		text = "connecting"
		if s.Server != "" {
			text += " to " + display.TerminalSafe(s.Server)
		}
	case s.Watching && s.Position == 0:
		text = "waiting for its sender to begin"
	}
	text = canvas.Fit(text, l.right()-6, 0, m.glyphs.Ellipsis)
	c.Text((l.right()-canvas.Width(text))/2, l.lanesY+(l.axisY-l.lanesY)/2, l.right(), text, style)
}

// drawInputLevel draws the input level as a lane of its own. A cell that is not
// complete yet stays empty: the meter in the header shows the moment, and a line
// that changes ten times a second costs a slow network too much.
func (m *model) drawInputLevel(c *canvas.Canvas, l layout, w window, s *display.Session) {
	if l.levelH == 0 {
		return
	}
	bottom := l.levelY + l.levelH - 1
	c.Text(3, bottom, l.gutter-4, "input level", canvas.Dim)
	m.drawGrid(c, l, w, l.levelY, l.levelH)
	complete := min(w.column(min(s.Position, float64(len(s.Levels))/float64(display.ChunksPerSecond))), w.cells)
	if s.Finished() {
		complete = min(complete+1, w.cells)
	}
	for i := range complete {
		level, ok := levelBetween(s.Levels, w.at(i), w.at(i+1))
		if !ok {
			continue
		}
		style := canvas.Dim
		if level.Peak >= display.Clipping {
			style = canvas.Bad
		}
		eighths := int(math.Round(display.ScaleDecibels(level.RMS, laneFloor, laneTop) * float64(canvas.Subcells*l.levelH)))
		for j := range l.levelH {
			if n := min(max(eighths-canvas.Subcells*j, 0), canvas.Subcells); n > 0 {
				c.Set(l.gutter+i, bottom-j, m.glyphs.Rise[n], style)
			}
		}
	}
}

// The range of the lane in dB of full scale: less than the meter's, so that
// speech uses its whole height.
const laneFloor, laneTop = -52, -12

// levelBetween is the RMS of a stretch of the levels, in seconds, and its
// highest peak. false = there are none.
func levelBetween(levels []display.Level, from, to float64) (display.Level, bool) {
	index := func(seconds float64) int { return int(math.Floor(seconds*float64(display.ChunksPerSecond) + 0.5)) }
	lo, hi := max(index(from), 0), min(index(to), len(levels))
	if lo >= hi {
		if lo >= len(levels) || to <= 0 {
			return display.Level{}, false
		}
		hi = min(lo+1, len(levels)) // a cell shorter than a chunk
	}
	power, peak := 0.0, float32(0)
	for _, l := range levels[lo:hi] {
		power += float64(l.RMS) * float64(l.RMS)
		peak = max(peak, l.Peak)
	}
	return display.Level{RMS: float32(math.Sqrt(power / float64(hi-lo))), Peak: peak}, true
}

// drawAxis draws the time axis, what concerns all lanes (overlap, gaps,
// bookmarks), how many lanes are above and below the visible ones, and whether somebody
// speaks there.
func (m *model) drawAxis(c *canvas.Canvas, l layout, w window, s *display.Session) {
	labelY := l.axisY
	if l.axisH > 1 {
		labelY++
		m.drawRule(c, l, w, s)
	}

	// The position at the right edge is always shown; a label that would touch
	// it is omitted.
	right, rightStyle := display.Clock(w.position), canvas.Brand.Bold()
	if !w.follow {
		right, rightStyle = display.Clock(w.end()), canvas.Dim
	}
	limit := w.cells - canvas.Width(right)
	if m.view.showsAll() {
		limit = min(max(w.column(w.position)+1-canvas.Width(right), 0), limit)
	}
	c.Text(l.gutter+limit, labelY, w.cells, right, rightStyle)
	w.ticks(func(col int, at float64) {
		label := display.Clock(at)
		n := canvas.Width(label)
		x := max(col-n/2, 0)
		if x+n < limit {
			c.Text(l.gutter+x, labelY, n, label, canvas.Dim)
		}
	})
	if l.axisH == 1 { // no rule: bookmarks are between the labels
		w.bookmarks(s.Bookmarks, func(col int) {
			if c.Blank(l.gutter+col, labelY) {
				c.Set(l.gutter+col, labelY, m.glyphs.Bookmark, canvas.Brand.Bold())
			}
		})
	}

	x := 3
	hidden := func(arrow string, lanes []display.Speaker) {
		if len(lanes) == 0 {
			return
		}
		x += c.Text(x, labelY, 8, arrow+" "+strconv.Itoa(len(lanes)), canvas.Warn) + 1
		if i := slices.IndexFunc(lanes, s.Speaking); i >= 0 {
			c.Set(x, labelY, m.glyphs.Speaking, lanes[i].Style.Bold())
		}
		x += 2
	}
	hidden(m.glyphs.Up, s.Speakers[:m.view.top])
	hidden(m.glyphs.Down, s.Speakers[min(m.view.top+l.visible, len(s.Speakers)):])
}

func (m *model) drawRule(c *canvas.Canvas, l layout, w window, s *display.Session) {
	set := func(col int, glyph string, style canvas.Style) { c.Set(l.gutter+col, l.axisY, glyph, style) }
	first := max(-w.first, 0)
	c.Fill(l.gutter+first, l.axisY, w.cells-first, 1, m.glyphs.Rule, canvas.Faint)
	w.ticks(func(col int, _ float64) { set(col, m.glyphs.Tick, canvas.Faint) })
	// A cell of many seconds nearly always has some overlap; marked are those
	// with overlap in a quarter of it.
	least := w.cellDur / canvas.Subcells / 2
	if w.cellDur > 2 {
		least = w.cellDur / 4
	}
	for i, seconds := range w.overlap(s) {
		if seconds >= least {
			set(i, m.glyphs.Overlap, canvas.Warn.Bold())
		}
	}
	w.gaps(s.Gaps, func(col int) { set(col, m.glyphs.Gap, canvas.Bad.Bold()) })
	w.bookmarks(s.Bookmarks, func(col int) { set(col, m.glyphs.Bookmark, canvas.Brand.Bold()) })
}

// drawCursor draws the cursor of a view that stands still. The badge has its
// position.
func (m *model) drawCursor(c *canvas.Canvas, l layout, w window) {
	if column, shown := m.cursorColumn(w); shown {
		c.Fill(l.gutter+column, l.lanesY, 1, l.axisY-l.lanesY, m.glyphs.Vertical, canvas.Brand.Bold())
	}
}
