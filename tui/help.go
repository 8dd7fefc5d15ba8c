package tui

// drawHelp lays the keys over the middle of the screen: in one column, or in
// two where the screen is low.
func (m *model) drawHelp(c *canvas) {
	type entry struct{ key, help string }
	var es []entry
	keyW, helpW := 0, 0
	for _, b := range m.bindings {
		if b.help == "" {
			continue
		}
		e := entry{b.label(m.o.ASCII), b.help}
		es = append(es, e)
		keyW, helpW = max(keyW, textWidth(e.key)), max(helpW, textWidth(e.help))
	}
	cols := 1
	if len(es)+4 > m.h {
		cols = 2
	}
	rows := (len(es) + cols - 1) / cols
	colW := keyW + 2 + helpW
	w, h := min(cols*colW+(cols-1)*3+4, m.w), min(rows+2, m.h)
	if rows+4 <= m.h {
		h += 2
	}
	x, y := (m.w-w)/2, (m.h-h)/2
	c.clear(x-1, y, w+2, h)
	m.drawBox(c, x, y, w, h, " keys ")
	pad := (h - rows) / 2
	if cols > 1 {
		colW = (w - 3) / 2
	}
	for i, e := range es {
		ex, ey := x+2+(i/rows)*colW, y+pad+i%rows
		if ey >= y+h {
			continue
		}
		room := min(colW-1, x+w-1-ex)
		k := min(keyW+2, textWidth(e.key)+2)
		if cols == 1 {
			k = keyW + 2
		}
		c.text(ex, ey, room, e.key, style{role: roleBrand, attr: bold})
		c.text(ex+k, ey, room-k, e.help, style{})
	}
}

func (m *model) drawBox(c *canvas, x, y, w, h int, title string) {
	g, st := m.glyphs, style{role: roleFaint}
	for i := 1; i < w-1; i++ {
		c.set(x+i, y, g.boxH, st)
		c.set(x+i, y+h-1, g.boxH, st)
	}
	for j := 1; j < h-1; j++ {
		c.set(x, y+j, g.boxV, st)
		c.set(x+w-1, y+j, g.boxV, st)
	}
	c.set(x, y, g.boxTL, st)
	c.set(x+w-1, y, g.boxTR, st)
	c.set(x, y+h-1, g.boxBL, st)
	c.set(x+w-1, y+h-1, g.boxBR, st)
	c.text(x+2, y, w-4, title, style{role: roleDim})
}
