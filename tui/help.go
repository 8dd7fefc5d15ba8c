package tui

import "fmt"

// drawHelp lays the keys over the middle of the screen, in two columns with
// what they do and what the timeline does not say in words; where there is no
// room for that, a word for each, on as many pages as it takes.
func (m *model) drawHelp(c *canvas) {
	shown := m.helped()
	if k := m.wideHelp(shown); k.fits(m.w, m.h) {
		m.drawWideHelp(c, shown, k)
	} else {
		m.drawLowHelp(c, shown)
	}
}

// helped are the bindings that the help names.
func (m *model) helped() (shown []binding) {
	for _, b := range m.bindings {
		if b.help != "" && (b.on == m.here() || b.on == anywhere) {
			shown = append(shown, b)
		}
	}
	return shown
}

// helpPages is how many pages the help has on this screen.
func (m *model) helpPages() int {
	shown := m.helped()
	if m.wideHelp(shown).fits(m.w, m.h) {
		return 1
	}
	perPage := m.lowColumns(shown) * max(m.h-1, 1)
	return (len(shown) + perPage - 1) / perPage
}

// sign is a glyph and what it stands for.
type sign struct {
	glyph func(*glyphs) string
	role  role
	text  string
}

// wireLegend explains the glyphs of the wire view.
var wireLegend = []sign{
	{func(g *glyphs) string { return g.right }, roleDim, "sent"},
	{func(g *glyphs) string { return g.left }, roleBrand, "received"},
	{func(g *glyphs) string { return g.rise[1] }, roleGood, "a chunk each 100 ms"},
	{func(g *glyphs) string { return g.rise[8] }, roleWarn, "none for a second"},
}

// legend explains what the screen does not say in words.
func (m *model) legend() []sign {
	if m.here() == onWire {
		return wireLegend
	}
	return timelineLegend
}

var timelineLegend = []sign{
	{func(g *glyphs) string { return g.speaking }, roleLane0, "speaking now"},
	{func(g *glyphs) string { return g.openHatch + g.openHatch }, roleLane0, "heard, turn still open"},
	{func(g *glyphs) string { return g.hatch + g.hatch }, roleDim, "heard, not decided yet"},
	{func(g *glyphs) string { return g.overlap + g.overlap }, roleWarn, "several at once"},
	{func(g *glyphs) string { return g.gap + g.gap }, roleBad, "never sent"},
	{func(g *glyphs) string { return g.mark1 }, roleBrand, "a bookmark"},
}

// helpBox is the measure of the wide help, in cells.
type helpBox struct{ key, text, rows, w, h int }

func (k helpBox) fits(w, h int) bool { return k.w <= w && k.h <= h }

func (m *model) wideHelp(shown []binding) helpBox {
	k := helpBox{rows: (len(shown) + 1) / 2}
	for _, e := range m.legend() {
		k.text = max(k.text, len(e.text))
	}
	for _, b := range shown {
		k.key, k.text = max(k.key, textWidth(b.label(m.glyphs.ascii))), max(k.text, textWidth(b.help))
	}
	k.w, k.h = 2+2*(k.key+2+k.text)+3+2, k.rows+(len(m.legend())+1)/2+5
	return k
}

func (m *model) drawWideHelp(c *canvas, shown []binding, k helpBox) {
	x, y := (m.w-k.w)/2, (m.h-k.h)/2
	c.clear(x-1, y, k.w+2, k.h)
	m.drawBox(c, x, y, k.w, k.h, " keys ")
	if text := m.streamText(); textWidth(text)+4 <= k.w {
		c.text(x+2, y+k.h-1, k.w-4, text, style{role: roleDim})
	}
	right := k.key + 2 + k.text + 3
	for i, b := range shown {
		at, row := x+2+i/k.rows*right, y+2+i%k.rows
		c.text(at, row, k.key, b.label(m.glyphs.ascii), style{role: roleBrand, attr: bold})
		c.text(at+k.key+2, row, k.text, b.help, style{})
	}
	half := (len(m.legend()) + 1) / 2
	for i, e := range m.legend() {
		at, row := x+2+i/half*right, y+3+k.rows+i%half
		c.text(at, row, k.key, e.glyph(m.glyphs), style{role: e.role})
		c.text(at+k.key+2, row, k.text, e.text, style{role: roleDim})
	}
}

// streamText is under which id others can watch the stream.
func (m *model) streamText() string {
	if m.state.Stream == "" {
		return ""
	}
	return " stream " + Clean(m.state.Stream) + " "
}

// lowColumns is how many columns of keys stand beside each other.
func (m *model) lowColumns(shown []binding) int {
	wide := 0
	for _, b := range shown {
		wide = max(wide, textWidth(b.label(m.glyphs.ascii))+2+textWidth(b.inShort()))
	}
	return max((m.w-1)/(wide+1), 1)
}

// drawLowHelp takes the whole screen.
func (m *model) drawLowHelp(c *canvas, shown []binding) {
	c.clear(0, 0, m.w, m.h)
	title, pages := "keys", m.helpPages()
	if pages > 1 {
		title = fmt.Sprintf("keys %d of %d, ? goes on", m.help, pages)
	}
	used := c.text(1, 0, m.w-2, title, style{role: roleDim})
	if text := m.streamText(); used+textWidth(text)+3 <= m.w {
		c.right(m.w-1, 0, text, style{role: roleDim})
	}
	rows, columns := m.h-1, m.lowColumns(shown)
	colW := (m.w - 1) / columns
	shown = shown[min((m.help-1)*rows*columns, len(shown)):]
	for i, b := range shown[:min(len(shown), rows*columns)] {
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
