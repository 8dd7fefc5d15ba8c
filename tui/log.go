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

// drawLog lists the latest turns and bookmarks, newest first, where a high
// screen leaves room for it.
func (m *model) drawLog(c *canvas, l layout, b *board) {
	if l.logH < 2 || len(b.people) == 0 {
		return
	}
	dim := style{role: roleDim}
	x, end := l.timelineX(), 3+l.name+1+l.talk
	c.text(3, l.logY, l.w-4, "latest turns", dim)
	for i, e := range latest(b, l.logH-1) {
		y := l.logY + 1 + i
		c.right(end, y, clock(e.at), style{})
		if e.lane < 0 {
			c.text(3, y, l.name, m.glyphs.mark1+" bookmark", style{role: roleBrand})
			c.text(x+2, y, l.w-x-3, fit(Clean(e.note), l.w-x-3, 0, m.glyphs.ellipsis), style{role: roleBrand})
			continue
		}
		p, length := b.people[e.lane], e.turn.End-e.turn.Start
		st := style{role: p.role}
		if p.muted {
			st = dim
		}
		c.text(3, y, l.name, fit(p.name, l.name, 3, m.glyphs.ellipsis), st)
		c.right(x+7, y, fmt.Sprintf("%.1f s", length), dim)
		c.text(x+9, y, l.w-x-10, bar(length*logScale, m.glyphs), st)
	}
}

type logEntry struct {
	at   float64
	lane int // -1 = a bookmark
	turn protocol.Turn
	note string
}

// latest gives the n finished turns and bookmarks that began last, newest
// first.
func latest(b *board, n int) []logEntry {
	var out []logEntry
	for i, lane := range b.Timeline.Lanes {
		for _, t := range lane.Turns[max(len(lane.Turns)-n, 0):] {
			out = append(out, logEntry{at: t.Start, lane: i, turn: t})
		}
	}
	for _, k := range b.marks[max(len(b.marks)-n, 0):] {
		out = append(out, logEntry{at: k.At, lane: -1, note: k.Note})
	}
	slices.SortStableFunc(out, func(a, b logEntry) int {
		return cmp.Or(cmp.Compare(b.at, a.at), a.lane-b.lane)
	})
	return out[:min(len(out), n)]
}
