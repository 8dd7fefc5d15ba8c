package tui

import (
	"math"

	"hubbub/protocol"
)

// The minimap is the whole session in one line: each cell as high as the part
// of its time in which somebody spoke, in the colour of whoever spoke most;
// bookmarks and gaps; and between brackets the window of the timeline.

// mapSpan is how many seconds the minimap is wide: for a file all of it, else
// somewhat more than was heard.
func mapSpan(s State) float64 {
	if s.Length > 0 {
		return max(s.Length, s.Heard)
	}
	return wholeSpan(s.Heard)
}

// mapCell is what the minimap knows of one cell.
type mapCell struct {
	height uint8 // eighths, 0 = silence
	role   role
}

// minimap is the newest picture, and what it is of.
type minimap struct {
	valid    bool
	lanes    []protocol.Lane
	span     float64
	decided  int // in cells: how far open turns go
	revision int64
	solo     string
	cells    []mapCell
	talk     []float64 // of each lane and cell, kept for its memory
}

// survey draws up the cells, unless nothing has changed since the last time.
func (m *model) survey(b *board, cells int) []mapCell {
	_, revision := m.store.Load()
	span := mapSpan(b.State)
	dur := span / float64(cells)
	decided := int(b.decided() / dur)
	k := &m.minimap
	if k.valid && k.span == span && k.decided == decided && k.revision == revision && k.solo == m.solo && len(k.cells) == cells && sameLanes(k.lanes, b.Timeline.Lanes) {
		return k.cells
	}
	*k = minimap{valid: true, lanes: b.Timeline.Lanes, span: span, decided: decided, revision: revision, solo: m.solo, cells: make([]mapCell, cells), talk: k.talk}
	if n := cells * len(b.people); cap(k.talk) < n {
		k.talk = make([]float64, n)
	} else {
		k.talk = k.talk[:n]
		clear(k.talk)
	}
	for i, lane := range b.Timeline.Lanes {
		if b.people[i].muted {
			continue
		}
		talk := k.talk[i*cells : (i+1)*cells]
		for _, t := range lane.Turns {
			spread(talk, t.Start, t.End, dur)
		}
		if lane.Open {
			spread(talk, lane.OpenSince, max(b.decided(), lane.OpenSince+0.1), dur)
		}
	}
	for c := range k.cells {
		most, who := 0.0, -1
		sum := 0.0
		for i := range b.people {
			t := k.talk[i*cells+c]
			if sum += t; t > most {
				most, who = t, i
			}
		}
		if who >= 0 {
			k.cells[c] = mapCell{uint8(min(max(math.Round(8*sum/dur), 1), 8)), b.people[who].role}
		}
	}
	return k.cells
}

// spread adds a stretch of speech to the cells that it lies in, in seconds.
func spread(cells []float64, start, end, dur float64) {
	for c := max(int(start/dur), 0); c < len(cells); c++ {
		from, to := max(start, float64(c)*dur), min(end, float64(c+1)*dur)
		if to <= from {
			if float64(c)*dur >= end {
				return
			}
			continue
		}
		cells[c] += to - from
	}
}

func (m *model) drawMap(c *canvas, l layout, w window, b *board) {
	if l.mapH == 0 {
		return
	}
	x0, n := l.timelineX(), w.cells
	c.text(3, l.mapY, l.name, "session", style{role: roleDim})
	cells := m.survey(b, n)
	dur := mapSpan(b.State) / float64(n)
	for i, cell := range cells {
		if cell.height > 0 {
			c.set(x0+i, l.mapY, m.glyphs.rise[cell.height], style{role: cell.role})
		} else if float64(i)*dur < b.Heard {
			c.set(x0+i, l.mapY, m.glyphs.rise[0], style{role: roleFaint})
		}
	}
	at := func(seconds float64) int { return min(max(int(seconds/dur), 0), n-1) }
	for _, g := range b.Gaps {
		if g.End-g.Start >= dur/2 {
			for i := at(g.Start); i <= at(g.End); i++ {
				c.set(x0+i, l.mapY, m.glyphs.gap, style{role: roleBad})
			}
		}
	}
	for _, k := range b.marks {
		c.set(x0+at(k.At), l.mapY, m.glyphs.mark1, style{role: roleBrand, attr: bold})
	}
	edge := style{role: roleBrand, attr: bold}
	from, to := at(w.at(0)), at(min(w.at(w.cells), max(b.Heard, 0)))
	c.set(x0+from, l.mapY, m.glyphs.mapLeft, edge)
	c.set(x0+to, l.mapY, m.glyphs.mapRight, edge)
}

// mapAt is the position in seconds of a column of the minimap.
func (m *model) mapAt(column int, b *board, cells int) float64 {
	return (float64(column) + 0.5) * mapSpan(b.State) / float64(cells)
}
