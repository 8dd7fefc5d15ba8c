package tui

import (
	"math"

	"hubbub/protocol"
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

// mapCell is one cell of the minimap.
type mapCell struct {
	height uint8 // eighths, 0 = silence
	style  canvas.Style
}

// minimapCache keeps the newest cells, and what they were computed from. Computing them
// costs little, but the cell in which an open turn ends would change with every tick: 7 %
// more output to the terminal.
type minimapCache struct {
	timeline protocol.Snapshot
	span     float64
	decided  int   // in cells: where open turns end
	revision int64 // of the annotations
	solo     string
	cells    []mapCell
}

// mapCells computes the cells, unless nothing has changed since the last time.
func (m *model) mapCells(s *display.Session, cells int) []mapCell {
	_, revision := m.annotations.Load()
	span := mapSpan(s.State)
	dur := span / float64(cells)
	decided := int(s.DecidedUntil() / dur)
	k := &m.minimap
	if k.span == span && k.decided == decided && k.revision == revision && k.solo == m.solo && len(k.cells) == cells && display.EqualTurns(k.timeline, s.Timeline) {
		return k.cells
	}
	*k = minimapCache{timeline: s.Timeline, span: span, decided: decided, revision: revision, solo: m.solo, cells: make([]mapCell, cells)}
	all := make([]float64, cells*len(s.Speakers)) // talk of each speaker and cell
	for i, p := range s.Speakers {
		if p.Muted {
			continue
		}
		talk := all[i*cells : (i+1)*cells]
		for _, t := range p.Turns {
			addTalk(talk, t.Start, t.End, dur)
		}
		if p.Open {
			addTalk(talk, p.OpenSince, max(s.DecidedUntil(), p.OpenSince+0.1), dur)
		}
	}
	for c := range k.cells {
		most, who, sum := 0.0, -1, 0.0
		for i := range s.Speakers {
			t := all[i*cells+c]
			if sum += t; t > most {
				most, who = t, i
			}
		}
		if who >= 0 {
			k.cells[c] = mapCell{uint8(min(max(math.Round(canvas.Subcells*sum/dur), 1), canvas.Subcells)), s.Speakers[who].Style}
		}
	}
	return k.cells
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
	for i, cell := range m.mapCells(s, n) {
		if cell.height > 0 {
			set(i, m.glyphs.Rise[cell.height], cell.style)
		} else if float64(i)*dur < s.Position {
			set(i, m.glyphs.Rise[0], canvas.Faint)
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
