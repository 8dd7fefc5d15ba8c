package tui

import (
	"fmt"
	"math"
	"sort"

	"hubbub/protocol"
)

// unknownLatency stands for State.Latency when that is 0, in seconds.
const unknownLatency = 1.0

// decided is up to where the session's turns are settled, in seconds: the
// service has had the audio and its latency has passed, or an event has told
// so. Audio that is waiting to be sent is not decided, however old it is.
func (s State) decided() float64 {
	if s.Finished || s.Link == Closed {
		return s.Heard
	}
	latency := s.Latency.Seconds()
	if latency <= 0 {
		latency = unknownLatency
	}
	return max(min(s.Heard, max(s.Timeline.Decided, s.Sent-latency)), 0)
}

// drawLanes draws one lane for each label: on the left who it is, on the right
// when they spoke.
//
// It answers where several who are not muted spoke at once: eighths of cells,
// as raster does.
func (m *model) drawLanes(c *canvas, l layout, w window, b *board) (overlap []uint8) {
	if len(b.people) == 0 {
		m.drawEmpty(c, l, b.State)
		m.drawUndecided(c, l, w, b.State, l.lanesY, nil, rolePlain)
		return nil
	}
	masks, once := make([]uint8, w.cells), make([]uint8, w.cells)
	overlap = make([]uint8, w.cells)
	for i, lane := range b.Timeline.Lanes {
		p := b.people[i]
		rasterLane(masks, w, b.State, lane)
		if !p.muted {
			for k, mask := range masks {
				overlap[k] |= once[k] & mask
				once[k] |= mask
			}
		}
		if i < m.view.top || i-m.view.top >= l.visible {
			continue
		}
		y := l.lanesY + (i-m.view.top)*l.pitch
		m.drawName(c, l, y, i, lane, b)
		m.drawGrid(c, l, w, y, l.bar)
		m.drawScars(c, l, w, b, y)
		r := p.role
		if p.muted {
			r = roleFaint
		}
		m.drawTurns(c, l, w, b.State, y, lane, r, masks)
	}
	return overlap
}

// talk is a label's talk time in seconds, the open turn as far as it is
// decided included.
func talk(lane protocol.Lane, s State) float64 {
	t := lane.Talk
	if lane.Open {
		t += max(s.decided()-lane.OpenSince, 0)
	}
	return t
}

func (m *model) drawName(c *canvas, l layout, y, i int, lane protocol.Lane, b *board) {
	p, dim := b.people[i], style{role: roleDim}
	st := style{role: p.role}
	if p.muted {
		st = dim
	}
	if lane.Open && !b.Finished {
		st = st.bold()
		c.set(1, y, m.glyphs.speaking, st)
	}
	if m.pick != nil && i < 9 { // the key that chooses
		c.set(1, y, itoa(i+1), style{role: roleBrand, attr: bold})
	}
	nameStyle := st
	if b.notes.Root(m.selected) == p.root && m.selected != "" {
		for j := range max(l.pitch-1, 1) {
			c.set(0, y+j, m.glyphs.selected, style{role: roleBrand, attr: bold})
		}
		nameStyle = st.reverse()
	}
	c.text(3, y, l.name, fit(p.name, l.name, 3, m.glyphs.ellipsis), nameStyle)
	end := 3 + l.name + 1 + l.talk
	c.right(end, y, talkTime(p.talk), style{attr: st.attr & bold})
	if l.pitch > 1 {
		what := count(int64(p.turns), "turn")
		share := fmt.Sprintf("%.0f%%", 100*p.share)
		if p.muted {
			share = "muted"
		}
		c.text(3, y+1, l.name, what, dim)
		c.right(end, y+1, share, dim)
	}
}

// drawScars draws through a lane what belongs to no label: stretches that the
// service never had, and the lines of bookmarks.
func (m *model) drawScars(c *canvas, l layout, w window, b *board, y int) {
	line := func(col int, glyph string, st style) {
		for j := range l.bar {
			c.set(l.timelineX()+col, y+j, glyph, st)
		}
	}
	w.gaps(b.Gaps, func(col int) { line(col, m.glyphs.gapFill, style{role: roleFaint}) })
	if m.glyphs.markLine != " " {
		w.marks(b.marks, func(col int) { line(col, m.glyphs.markLine, style{role: roleBrand}) })
	}
}

// gaps calls f with each column that a gap touches.
func (w window) gaps(gaps []Span, f func(column int)) {
	for i := sort.Search(len(gaps), func(i int) bool { return gaps[i].End > w.at(0) }); i < len(gaps) && gaps[i].Start < w.at(w.cells); i++ {
		last := int(math.Ceil(gaps[i].End/w.cellDur-1e-9)) - 1 - w.first
		for col := max(w.column(gaps[i].Start), 0); col <= min(last, w.cells-1); col++ {
			f(col)
		}
	}
}

// marks calls f with the column of each bookmark in the window.
func (w window) marks(marks []protocol.Bookmark, f func(column int)) {
	for i := sort.Search(len(marks), func(i int) bool { return w.column(marks[i].At) >= 0 }); i < len(marks); i++ {
		col := w.column(marks[i].At)
		if col >= w.cells {
			return
		}
		f(col)
	}
}

// drawGrid continues the ticks of the axis upwards, so that the eye finds the
// time of an edge.
func (m *model) drawGrid(c *canvas, l layout, w window, y, rows int) {
	if m.glyphs.grid == " " {
		return
	}
	w.ticks(func(col int, _ float64) {
		for j := range rows {
			c.set(l.timelineX()+col, y+j, m.glyphs.grid, style{role: roleFaint})
		}
	})
}

// rasterLane marks what part of each cell a lane's speech covers, the open turn
// as far as it is decided.
func rasterLane(masks []uint8, w window, s State, lane protocol.Lane) {
	clear(masks)
	raster(masks, lane.Turns, w.first, w.cellDur)
	if lane.Open && w.at(w.cells) > lane.OpenSince {
		end := s.decided()
		if n := w.undecided(s); n > 0 {
			end = w.at(w.column(s.Heard) + 1 - n)
		}
		if end > lane.OpenSince {
			rasterTurn(masks, lane.OpenSince, end, w.first, w.cellDur)
		}
	}
}

func (m *model) drawTurns(c *canvas, l layout, w window, s State, y int, lane protocol.Lane, r role, masks []uint8) {
	m.drawUndecided(c, l, w, s, y, &lane, r)
	for i, mask := range masks {
		glyph, swapped := m.glyphs.mark(mask)
		if glyph == "" {
			continue
		}
		st := style{role: r}
		if swapped {
			st = st.reverse()
		}
		for j := range l.bar {
			c.set(l.timelineX()+i, y+j, glyph, st)
		}
	}
}

// undecided is how many cells, counted back from the present, are closer to
// heard than to decided. It is a number of cells and not a position, so that
// the hatch moves together with the window and not half a cell later: each
// move rewrites all lanes.
func (w window) undecided(s State) int {
	return int(math.Round((s.Heard - s.decided()) / w.cellDur))
}

// drawUndecided hatches what was heard and is not decided yet: in the colour
// of a label whose turn is open, in grey for the others.
func (m *model) drawUndecided(c *canvas, l layout, w window, s State, y int, lane *protocol.Lane, r role) {
	last := w.column(s.Heard)
	first := last + 1 - w.undecided(s)
	glyph, st := m.glyphs.hatch, style{role: roleDim}
	if lane != nil && lane.Open {
		first = max(first, w.column(lane.OpenSince))
		glyph, st = m.glyphs.openHatch, style{role: r}
	}
	for i := max(first, 0); i <= min(last, w.cells-1); i++ {
		for j := range l.bar {
			c.set(l.timelineX()+i, y+j, glyph, st)
		}
	}
}

// drawEmpty says what is being waited for before anybody has spoken.
func (m *model) drawEmpty(c *canvas, l layout, s State) {
	text, st := "listening for the first voice", style{role: roleDim}
	switch {
	case s.Link == Failed:
		text, st = "no connection", style{role: roleBad}
		if s.LinkReason != "" {
			text += ": " + Clean(s.LinkReason)
		}
	case s.Finished:
		text = "nobody spoke"
	case s.Link == Reconnecting:
		text = retryText(s)
	case s.Link == Connecting:
		text = "connecting"
		if s.Server != "" {
			text += " to " + Clean(s.Server)
		}
	case s.Watching && s.Heard == 0:
		text = "waiting for its sender to begin"
	}
	text = fit(text, l.w-6, 0, m.glyphs.ellipsis)
	c.text((l.w-textWidth(text))/2, l.lanesY+(l.axisY-l.lanesY)/2, l.w, text, st)
}
