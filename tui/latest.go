package tui

import (
	"fmt"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The latest turns and bookmarks, newest first, where a high screen leaves room; none has more than
// a third of it for its words:
//
//	latest turns
//	SPEAKER_01   0:09    2.1 s  ━━━━╸
//	◆ bookmark   0:07           decision: ship it

// latestScale is how many cells a second of speech gets in the list, at any
// zoom of the timeline.
const latestScale = 2

func (m *model) drawLatest(c *canvas.Canvas, l layout, s *display.Session) {
	rows := max(l.latestH-1, 0)
	entries := s.Latest(rows)
	if len(entries) == 0 {
		return
	}
	clockEnd := 3 + l.name + 1 + max(l.talk, len(display.Clock(maxTime(s)))) // after an hour, clocks are longer than talk times
	x := max(l.gutter, clockEnd+1) + 9
	width := l.w - x - 1
	c.Text(3, l.latestY, l.w-4, "latest turns", canvas.Dim)
	y, end := l.latestY+1, l.latestY+1+rows
	for _, e := range entries {
		if y == end {
			break
		}
		c.TextRight(clockEnd, y, display.Clock(e.At), canvas.Plain)
		text, textStyle := e.Note, canvas.Brand
		if e.Lane < 0 {
			c.Text(3, y, l.name, m.glyphs.Bookmark+" bookmark", textStyle)
		} else {
			p, length := s.Speakers[e.Lane], e.Turn.End-e.Turn.Start
			style := p.Style
			if p.Muted {
				style = canvas.Dim
			}
			if p.Recognised {
				c.Set(2, y, m.glyphs.Recognised, style)
			}
			c.Fitted(3, y, l.name, p.Name, 3, style)
			c.TextRight(x-2, y, fmt.Sprintf("%.1f s", length), canvas.Dim)
			if text, textStyle = e.Turn.Text, canvas.Plain; text == "" {
				text, textStyle = display.ThinBar(min(length*latestScale, float64(width)), m.glyphs), style
			}
		}
		for _, line := range canvas.WrapRows(display.TerminalSafe(text), width, min(max(rows/3, 1), end-y)) {
			c.Fitted(x, y, width, line, 0, textStyle)
			y++
		}
	}
}
