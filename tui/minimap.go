package tui

import (
	"math"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The minimap, one line for the whole session:
//
//	session          ▂▅▇▆▃▁▂▅▇◆▃▁▂▅╳┣▆▃▁▂▅▇▆▃▁┫
//
// Each cell is as high as the part of its time in which somebody spoke, in the
// colour of the speaker who spoke most. Brackets mark the window of the timeline.

// mapSpan is how many seconds the minimap shows: all of a file, else a little
// more than the session so far.
func mapSpan(s display.State) float64 {
	if s.Length > 0 {
		return max(s.Length, s.Position)
	}
	return wholeSpan(s.Position)
}

// mapTalk is for how long each speaker who is not muted talked in each cell of dur seconds. Open turns
// are whole cells: a last cell that grew with every tick would be 7 % more output to the terminal.
func mapTalk(s *display.Session, cells int, dur float64) (all []float64) {
	decided := math.Floor(s.DecidedUntil()/dur) * dur
	all = make([]float64, cells*len(s.Speakers))
	for i, p := range s.Speakers {
		if p.Muted {
			continue
		}
		talk := all[i*cells : (i+1)*cells]
		for _, t := range p.Turns {
			addTalk(talk, t.Start, t.End, dur)
		}
		if p.Open {
			addTalk(talk, p.OpenSince, max(decided, p.OpenSince+0.1), dur)
		}
	}
	return all
}

// addTalk adds a stretch of speech to the cells that it covers, in seconds.
func addTalk(cells []float64, start, end, dur float64) {
	for c := max(int(start/dur), 0); c < len(cells) && float64(c)*dur < end; c++ {
		cells[c] += max(min(end, float64(c+1)*dur)-max(start, float64(c)*dur), 0)
	}
}

func (m *model) drawMinimap(c *canvas.Canvas, l layout, w window, s *display.Session) {
	if l.mapH == 0 {
		return
	}
	n := w.cells
	set := func(col int, glyph string, style canvas.Style) { c.Set(l.gutter+col, l.mapY, glyph, style) }
	c.Text(3, l.mapY, l.name, "session", canvas.Dim)
	dur := mapSpan(s.State) / float64(n)
	talk := mapTalk(s, n, dur)
	for i := range n {
		most, sum, style := 0.0, 0.0, canvas.Faint
		for k, p := range s.Speakers {
			t := talk[k*n+i]
			if sum += t; t > most {
				most, style = t, p.Style
			}
		}
		if sum > 0 {
			set(i, m.glyphs.Rise[int(min(max(math.Round(canvas.Subcells*sum/dur), 1), canvas.Subcells))], style)
		} else if float64(i)*dur < s.Position {
			set(i, m.glyphs.Rise[0], style)
		}
	}
	column := func(seconds float64) int { return min(max(int(seconds/dur), 0), n-1) }
	for _, g := range s.Gaps {
		if g.End-g.Start >= dur/2 {
			for i := column(g.Start); i <= column(g.End); i++ {
				set(i, m.glyphs.Gap, canvas.Bad)
			}
		}
	}
	for _, k := range s.Bookmarks {
		set(column(k.At), m.glyphs.Bookmark, canvas.Brand.Bold())
	}
	set(column(w.at(0)), m.glyphs.MapLeft, canvas.Brand.Bold())
	set(column(min(w.end(), max(s.Position, 0))), m.glyphs.MapRight, canvas.Brand.Bold())
}

// mapPosition is the position in seconds of a column of the minimap.
func mapPosition(column int, s display.State, cells int) float64 {
	return (float64(column) + 0.5) * mapSpan(s) / float64(cells)
}
