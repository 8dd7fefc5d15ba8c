package tui

// draw puts the regions onto a canvas. Each region is a function in a file of
// its own: header.go, lanes.go, axis.go, log.go, status.go, help.go.
func (m *model) draw() string {
	c := newCanvas(m.w, m.h)
	l := m.layout()
	if l.small {
		m.drawTiny(c)
		return c.render(m.theme)
	}
	most := max(len(m.shown().Timeline.Lanes)-l.visible, 0)
	m.view.top = min(max(m.view.top, 0), most)
	s := m.shown()
	w := m.view.window(l.cells(), s.Heard)
	m.drawHeader(c, w)
	m.drawLanes(c, l, w, s)
	m.drawAxis(c, l, w, s)
	m.drawLog(c, l, s)
	m.drawStatus(c, l)
	m.drawKeys(c, l, w)
	if m.help {
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
