package tui

// draw puts the regions onto a canvas. Each region is a function in a file of
// its own: header.go, lanes.go, levels.go, axis.go, minimap.go, log.go, status.go, entry.go, help.go;
// the presenter's view is stage.go, that of the wire wire_draw.go.
func (m *model) draw() string {
	c := newCanvas(m.w, m.h)
	b := m.board()
	l := newLayout(m.w, m.h, b.State)
	if l.small {
		m.drawTiny(c, b)
		return c.render(m.theme)
	}
	if m.wire != nil {
		m.drawWire(c)
		m.drawBottom(c, l)
		if m.help > 0 {
			m.drawHelp(c)
		}
		return c.render(m.theme)
	}
	if m.stage {
		m.drawStage(c)
		m.drawBottom(c, l)
		return c.render(m.theme)
	}
	m.view.top = min(max(m.view.top, 0), max(len(b.people)-l.visible, 0))
	if i := b.index(m.selected); i >= 0 { // the selected lane is always seen
		m.view.top = min(max(m.view.top, i-l.visible+1), i)
	}
	w := m.view.window(l.cells(), b.Heard)
	m.drawHeader(c, w)
	overlap := m.drawLanes(c, l, w, b)
	m.drawLevels(c, l, w, b)
	m.drawAxis(c, l, w, b, overlap)
	m.drawMap(c, l, w, b)
	m.drawLog(c, l, b)
	m.drawStatus(c, l)
	m.drawBottom(c, l)
	if m.help > 0 {
		m.drawHelp(c)
	}
	return c.render(m.theme)
}

// segment is a piece of a line that may be left out when there is no room.
type segment struct {
	text  string
	style style
	keep  int // the higher, the earlier it is left out
}

// drawSegments writes segments with a gap between them; when they do not fit
// into width, the ones with the highest keep are left out. What is still too
// long is cut at its end. It returns the cells used.
func (m *model) drawSegments(c *canvas, x, y, width int, segs []segment, gap int) int {
	kept := append([]segment(nil), segs...)
	for {
		total, worst := -gap, -1
		for i, s := range kept {
			total += textWidth(s.text) + gap
			if s.keep > 0 && (worst < 0 || s.keep >= kept[worst].keep) {
				worst = i
			}
		}
		if total <= width || worst < 0 {
			break
		}
		kept = append(kept[:worst], kept[worst+1:]...)
	}
	used := 0
	for i, s := range kept {
		if i > 0 {
			used += gap
		}
		room := width - used
		if room <= 0 {
			break
		}
		used += c.text(x+used, y, room, fit(s.text, room, 0, m.glyphs.ellipsis), s.style)
	}
	return used
}
