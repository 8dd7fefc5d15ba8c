package tui

// drawHelp lays the keys over the middle of the screen: in one column with
// what they do, or in two with a word for it where the screen is low.
func (m *model) drawHelp(c *canvas) {
	var shown []binding
	for _, b := range m.bindings {
		if b.help != "" {
			shown = append(shown, b)
		}
	}
	if len(shown)+len(legend)+5 <= m.h {
		m.drawWideHelp(c, shown)
	} else {
		m.drawLowHelp(c, shown)
	}
}

// legend explains what the timeline does not say in words.
var legend = []struct {
	glyph func(*glyphs) string
	role  role
	text  string
}{
	{func(g *glyphs) string { return g.speaking }, roleLane0, "speaking now"},
	{func(g *glyphs) string { return g.openHatch + g.openHatch }, roleLane0, "heard, turn still open"},
	{func(g *glyphs) string { return g.hatch + g.hatch }, roleDim, "heard, not decided yet"},
}

func (m *model) drawWideHelp(c *canvas, shown []binding) {
	keyW, helpW := 0, 0
	for _, e := range legend {
		helpW = max(helpW, len(e.text))
	}
	for _, b := range shown {
		keyW, helpW = max(keyW, textWidth(b.label(m.glyphs.ascii))), max(helpW, textWidth(b.help))
	}
	w, h := 3+keyW+2+helpW+3, len(shown)+len(legend)+5
	x, y := (m.w-w)/2, (m.h-h)/2
	c.clear(x-1, y, w+2, h)
	m.drawBox(c, x, y, w, h, " keys ")
	for i, b := range shown {
		c.text(x+3, y+2+i, keyW, b.label(m.glyphs.ascii), style{role: roleBrand, attr: bold})
		c.text(x+3+keyW+2, y+2+i, helpW, b.help, style{})
	}
	for i, e := range legend {
		at := y + 3 + len(shown) + i
		c.text(x+3, at, keyW, e.glyph(m.glyphs), style{role: e.role})
		c.text(x+3+keyW+2, at, helpW, e.text, style{role: roleDim})
	}
}

// drawLowHelp takes the whole screen; minWidth x minHeight has room for all
// keys, which a test makes sure of.
func (m *model) drawLowHelp(c *canvas, shown []binding) {
	c.clear(0, 0, m.w, m.h)
	c.text(1, 0, m.w-2, "keys", style{role: roleDim})
	rows := m.h - 1
	colW := (m.w - 1) / ((len(shown) + rows - 1) / rows)
	for i, b := range shown {
		x, y := 1+i/rows*colW, 1+i%rows
		x += c.text(x, y, colW-1, b.label(m.glyphs.ascii), style{role: roleBrand, attr: bold}) + 2
		c.text(x, y, 1+(i/rows+1)*colW-x, b.inShort(), style{})
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
