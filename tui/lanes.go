package tui

import (
	"fmt"
	"math"

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
func (m *model) drawLanes(c *canvas, l layout, w window, s State) {
	ls := s.Timeline.Lanes
	if len(ls) == 0 {
		m.drawEmpty(c, l, s)
		m.drawUndecided(c, l, w, s, l.lanesY, nil, rolePlain)
		return
	}
	total := 0.0
	for i := range ls {
		total += talk(ls[i], s)
	}
	masks := make([]uint8, w.cells)
	for i := m.view.top; i < len(ls) && i-m.view.top < l.visible; i++ {
		y := l.lanesY + (i-m.view.top)*l.pitch
		m.drawName(c, l, y, ls[i], laneRole(i), s, total)
		m.drawGrid(c, l, w, y, l.bar)
		m.drawTurns(c, l, w, s, y, ls[i], laneRole(i), masks)
	}
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

func (m *model) drawName(c *canvas, l layout, y int, lane protocol.Lane, r role, s State, total float64) {
	st := style{role: r}
	if lane.Open && !s.Finished {
		st = st.bold()
		c.set(1, y, m.glyphs.speaking, st)
	}
	name := Clean(lane.Speaker)
	if name == "" {
		name = "(no name)"
	}
	c.text(3, y, l.name, fit(name, l.name, 3, m.glyphs.ellipsis), st)
	t := talk(lane, s)
	end := 3 + l.name + 1 + l.talk
	c.right(end, y, talkTime(t), style{attr: st.attr & bold})
	if l.bar > 1 {
		share := 0.0
		if total > 0 {
			share = t / total
		}
		n := len(lane.Turns)
		if lane.Open {
			n++
		}
		dim := style{role: roleDim}
		c.text(3, y+1, l.name, count(int64(n), "turn"), dim)
		c.right(end, y+1, fmt.Sprintf("%.0f%%", 100*share), dim)
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

func (m *model) drawTurns(c *canvas, l layout, w window, s State, y int, lane protocol.Lane, r role, masks []uint8) {
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
// of a label whose turn is open, faintly for the others.
func (m *model) drawUndecided(c *canvas, l layout, w window, s State, y int, lane *protocol.Lane, r role) {
	last := w.column(s.Heard)
	first := last + 1 - w.undecided(s)
	glyph, st := m.glyphs.hatch, style{role: roleFaint}
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
	case s.Link == Connecting:
		text = "connecting"
		if s.Server != "" {
			text += " to " + Clean(s.Server)
		}
	}
	text = fit(text, l.w-6, 0, m.glyphs.ellipsis)
	c.text((l.w-textWidth(text))/2, l.lanesY+(l.axisY-l.lanesY)/2, l.w, text, st)
}
