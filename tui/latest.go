package tui

import (
	"cmp"
	"fmt"
	"slices"

	"hubbub/protocol"
	"hubbub/tui/canvas"
)

// The latest turns and bookmarks, newest first, where a high screen leaves room:
//
//	latest turns
//	SPEAKER_01   0:09    2.1 s  ━━━━╸
//	◆ bookmark   0:07           decision: ship it

// latestScale is how many cells a second of speech gets in the list, at any
// zoom of the timeline.
const latestScale = 2

func (m *model) drawLatest(c *canvas.Canvas, l layout, s *session) {
	if l.latestH < 2 || len(s.speakers) == 0 {
		return
	}
	x, end := l.gutter, 3+l.name+1+l.talk
	c.Text(3, l.latestY, l.w-4, "latest turns", canvas.Dim)
	for i, e := range s.latest(l.latestH - 1) {
		y := l.latestY + 1 + i
		c.TextRight(end, y, clock(e.at), canvas.Plain)
		if e.lane < 0 {
			c.Text(3, y, l.name, m.glyphs.Bookmark+" bookmark", canvas.Brand)
			c.Text(x+2, y, l.w-x-3, canvas.Fit(Clean(e.note), l.w-x-3, 0, m.glyphs.Ellipsis), canvas.Brand)
			continue
		}
		p, length := s.speakers[e.lane], e.turn.End-e.turn.Start
		style := p.style
		if p.muted {
			style = canvas.Dim
		}
		if p.Recognised {
			c.Set(2, y, m.glyphs.Recognised, style)
		}
		c.Text(3, y, l.name, canvas.Fit(p.name, l.name, 3, m.glyphs.Ellipsis), style)
		c.TextRight(x+7, y, fmt.Sprintf("%.1f s", length), canvas.Dim)
		c.Text(x+9, y, l.w-x-10, thinBar(length*latestScale, m.glyphs), style)
	}
}

// latestEntry is a finished turn or a bookmark.
type latestEntry struct {
	at   float64
	lane int // index of the speaker; -1 = a bookmark
	turn protocol.Turn
	note string
}

// latest returns the n finished turns and bookmarks that began last, newest
// first.
func (s *session) latest(n int) []latestEntry {
	var out []latestEntry
	for i, p := range s.speakers {
		for _, t := range p.Turns[max(len(p.Turns)-n, 0):] {
			out = append(out, latestEntry{at: t.Start, lane: i, turn: t})
		}
	}
	for _, k := range s.bookmarks[max(len(s.bookmarks)-n, 0):] {
		out = append(out, latestEntry{at: k.At, lane: -1, note: k.Note})
	}
	slices.SortStableFunc(out, func(a, b latestEntry) int {
		return cmp.Or(cmp.Compare(b.at, a.at), a.lane-b.lane)
	})
	return out[:min(len(out), n)]
}
