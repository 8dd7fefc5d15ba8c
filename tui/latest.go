package tui

import (
	"fmt"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The latest turns, with their words if there are any, and bookmarks, newest first, where a high screen leaves room:
//
//	latest turns
//	SPEAKER_01   0:09    2.1 s  ━━━━╸
//	◆ bookmark   0:07           decision: ship it

// latestScale is how many cells a second of speech gets in the list, at any
// zoom of the timeline.
const latestScale = 2

func (m *model) drawLatest(c *canvas.Canvas, l layout, s *display.Session) {
	entries := s.Latest(max(l.latestH-1, 0))
	if len(entries) == 0 {
		return
	}
	end := 3 + l.name + 1 + max(l.talk, len(display.Clock(latest(s)))) // after an hour, clocks are longer than talk times
	x := max(l.gutter, end+1)
	c.Text(3, l.latestY, l.w-4, "latest turns", canvas.Dim)
	for i, e := range entries {
		y := l.latestY + 1 + i
		c.TextRight(end, y, display.Clock(e.At), canvas.Plain)
		if e.Lane < 0 {
			c.Text(3, y, l.name, m.glyphs.Bookmark+" bookmark", canvas.Brand)
			c.Fitted(x+2, y, l.w-x-3, display.TerminalSafe(e.Note), 0, canvas.Brand)
			continue
		}
		p, length := s.Speakers[e.Lane], e.Turn.End-e.Turn.Start
		style := p.Style
		if p.Muted {
			style = canvas.Dim
		}
		if p.Recognised {
			c.Set(2, y, m.glyphs.Recognised, style)
		}
		c.Fitted(3, y, l.name, p.Name, 3, style)
		c.TextRight(x+7, y, fmt.Sprintf("%.1f s", length), canvas.Dim)
		if e.Turn.Text != "" {
			c.Fitted(x+9, y, l.w-x-10, display.TerminalSafe(e.Turn.Text), 0, canvas.Plain)
			continue
		}
		c.Text(x+9, y, l.w-x-10, display.ThinBar(length*latestScale, m.glyphs), style)
	}
}
