package tui

import (
	"fmt"
	"slices"

	"hubbub/protocol"
)

// drawLog lists the latest turns, newest first, where a high screen leaves
// room for it.
func (m *model) drawLog(c *canvas, l layout, s State) {
	if l.logH < 2 || len(s.Timeline.Lanes) == 0 {
		return
	}
	dim := style{role: roleDim}
	c.text(3, l.logY, l.w-4, "latest turns", dim)
	for i, e := range latest(s.Timeline.Lanes, l.logH-1) {
		y := l.logY + 1 + i
		x := 3
		st := style{role: laneRole(e.lane)}
		x += c.text(x, y, l.name, fit(Clean(e.turn.Speaker), l.name, 3, m.glyphs.ellipsis), st)
		x = max(x, 3+l.name)
		at := clock(e.turn.Start)
		c.right(3+l.name+1+l.talk, y, at, style{})
		c.text(l.timelineX(), y, l.w-l.timelineX(), fmt.Sprintf("%5.1f s", e.turn.End-e.turn.Start), dim)
		_ = x
	}
}

type logEntry struct {
	lane int
	turn protocol.Turn
}

// latest gives the n finished turns that ended last, newest first.
func latest(ls []protocol.Lane, n int) []logEntry {
	var out []logEntry
	for i, lane := range ls {
		for _, t := range lane.Turns[max(len(lane.Turns)-n, 0):] {
			out = append(out, logEntry{i, t})
		}
	}
	slices.SortStableFunc(out, func(a, b logEntry) int {
		switch {
		case a.turn.End > b.turn.End:
			return -1
		case a.turn.End < b.turn.End:
			return 1
		}
		return a.lane - b.lane
	})
	return out[:min(len(out), n)]
}
