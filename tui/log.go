package tui

import (
	"cmp"
	"fmt"
	"slices"

	"hubbub/protocol"
)

// logScale is how many cells a second of speech gets in the list, whatever
// the zoom of the timeline.
const logScale = 2

// drawLog lists the latest turns, newest first, where a high screen leaves
// room for it.
func (m *model) drawLog(c *canvas, l layout, s State) {
	if l.logH < 2 || len(s.Timeline.Lanes) == 0 {
		return
	}
	dim := style{role: roleDim}
	x := l.timelineX()
	c.text(3, l.logY, l.w-4, "latest turns", dim)
	for i, e := range latest(s.Timeline.Lanes, l.logH-1) {
		y, length := l.logY+1+i, e.turn.End-e.turn.Start
		st := style{role: laneRole(e.lane)}
		c.text(3, y, l.name, fit(Clean(e.turn.Speaker), l.name, 3, m.glyphs.ellipsis), st)
		c.right(3+l.name+1+l.talk, y, clock(e.turn.Start), style{})
		c.right(x+7, y, fmt.Sprintf("%.1f s", length), dim)
		c.text(x+9, y, l.w-x-10, bar(length*logScale, m.glyphs), st)
	}
}

type logEntry struct {
	lane int
	turn protocol.Turn
}

// latest gives the n finished turns that began last, newest first.
func latest(ls []protocol.Lane, n int) []logEntry {
	var out []logEntry
	for i, lane := range ls {
		for _, t := range lane.Turns[max(len(lane.Turns)-n, 0):] {
			out = append(out, logEntry{i, t})
		}
	}
	slices.SortStableFunc(out, func(a, b logEntry) int {
		return cmp.Or(cmp.Compare(b.turn.Start, a.turn.Start), a.lane-b.lane)
	})
	return out[:min(len(out), n)]
}
