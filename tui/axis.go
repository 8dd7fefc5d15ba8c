package tui

import "math/bits"

// drawAxis draws the time scale under the lanes, and how many labels there
// are above and below the visible ones.
//
// On the rule stands what concerns everybody: where several spoke at once,
// what never reached the service, and bookmarks.
func (m *model) drawAxis(c *canvas, l layout, w window, b *board, overlap []uint8) {
	faint, dim := style{role: roleFaint}, style{role: roleDim}
	x0 := l.timelineX()
	labelY := l.axisY
	if l.axisH > 1 {
		labelY++
		for i := max(-w.first, 0); i < w.cells; i++ {
			c.set(x0+i, l.axisY, m.glyphs.rule, faint)
		}
		w.ticks(func(col int, _ float64) { c.set(x0+col, l.axisY, m.glyphs.tick, faint) })
		// A cell of many seconds always has a moment with two voices; marked is one
		// in which they talked over each other for a quarter of it.
		often := 1
		if w.cellDur > 2 {
			often = subcells / 4
		}
		for i, mask := range overlap {
			if bits.OnesCount8(mask) >= often {
				c.set(x0+i, l.axisY, m.glyphs.overlap, style{role: roleWarn, attr: bold})
			}
		}
		w.gaps(b.Gaps, func(col int) { c.set(x0+col, l.axisY, m.glyphs.gap, style{role: roleBad, attr: bold}) })
		w.marks(b.marks, func(col int) { c.set(x0+col, l.axisY, m.glyphs.mark1, style{role: roleBrand, attr: bold}) })
	}

	// The time at the right edge stands always; a tick's label that would
	// touch it gives way.
	right, rst := clock(w.heard), style{role: roleBrand, attr: bold}
	if !w.follow {
		right, rst = clock(w.at(w.cells)), dim
	}
	limit := w.cells - textWidth(right)
	if m.view.chosen && m.view.zoom >= wholeSession {
		limit = min(max(w.column(w.heard)+1-textWidth(right), 0), limit)
	}
	c.text(x0+limit, labelY, w.cells, right, rst)
	w.ticks(func(col int, at float64) {
		label := clock(at)
		n := textWidth(label)
		x := max(col-n/2, 0)
		if x+n < limit {
			c.text(x0+x, labelY, n, label, dim)
		}
	})
	if l.axisH == 1 { // no rule: a bookmark stands between the times
		w.marks(b.marks, func(col int) {
			if c.empty(x0+col, labelY) {
				c.set(x0+col, labelY, m.glyphs.mark1, style{role: roleBrand, attr: bold})
			}
		})
	}

	if above, below := m.view.top, len(b.people)-l.visible-m.view.top; above > 0 || below > 0 {
		x := 3
		if above > 0 {
			x += c.text(x, labelY, 8, m.glyphs.up+" "+itoa(above), style{role: roleWarn}) + 2
		}
		if below > 0 {
			c.text(x, labelY, 8, m.glyphs.down+" "+itoa(below), style{role: roleWarn})
		}
	}
}
