package tui

import (
	"cmp"
	"fmt"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/wire"
)

// The help, over the middle of the screen:
//
//	╭─ keys ────────────────────────────────────────────╮
//	│                                                   │
//	│ q       quit                 r    name a speaker  │
//	│ ?       this help            m    merge two lanes │
//	│                                                   │
//	│ ●       speaking now         ◆    a bookmark      │
//	╰─ stream 7c0e9a52-... ─────────────────────────────╯
//
// On a smaller screen it is the keys with one word each, on as many pages as
// needed. Package wire has the pages for the wire view.

func (m *model) drawHelp(c *canvas.Canvas) {
	m.help = min(m.help, m.helpPages()) // a larger screen has fewer pages, and another view has others
	shown := m.helpBindings()
	switch box, keys := m.helpBox(shown), m.helpPages()-m.wireFiguresPages(); {
	case m.help > keys:
		wire.DrawFigures(c, m.wireFrame(), m.help-keys, m.pageKeys())
	case box.fits(m.w, m.h):
		m.drawHelpBox(c, shown, box)
	default:
		m.drawHelpPage(c, shown, keys)
	}
}

func (m *model) helpBindings() (shown []binding) {
	for _, b := range m.bindings {
		if b.help == "" || len(b.keys) == 0 {
			continue
		}
		ofRow := b.row && m.screen() == listScreen && m.bound(b.keys[0]).name == b.name
		if b.on == m.screen() || b.on == anyScreen || ofRow {
			shown = append(shown, b)
		}
	}
	return shown
}

func (m *model) helpPages() int {
	shown := m.helpBindings()
	if m.helpBox(shown).fits(m.w, m.h) {
		return 1 + m.wireFiguresPages()
	}
	perPage := m.helpColumns(shown) * m.helpRows()
	return (len(shown)+perPage-1)/perPage + m.wireFiguresPages()
}

// pageKeys are the keys of a page of the help: the one that opens it closes the last.
func (m *model) pageKeys() string {
	if m.help < m.helpPages() {
		return m.keyOf("help") + " next, " + m.keyOf("back") + " closes"
	}
	return m.keyOf("help") + " closes"
}

// legendEntry is a glyph and its meaning.
type legendEntry struct {
	glyph string
	style canvas.Style
	text  string
}

func (m *model) legend() []legendEntry {
	g := m.glyphs
	if m.screen() == wireScreen {
		return []legendEntry{
			{g.Right, canvas.Dim, "sent"},
			{g.Left, canvas.Brand, "received"},
			{g.Rise[1], canvas.Good, "a chunk each 100 ms"},
			{g.Rise[8], canvas.Warn, "none for a second"},
			{g.Gap, canvas.Bad, "chunks or stream lost"},
		}
	}
	legend := []legendEntry{
		{g.Speaking, canvas.Speaker(0), "speaking now"},
		{g.PendingOpen + g.PendingOpen, canvas.Speaker(0), "not decided, open turn"},
		{g.Pending + g.Pending, canvas.Dim, "not decided yet"},
		{g.Overlap + g.Overlap, canvas.Warn, "several at once"},
		{g.GapFill + g.Gap, canvas.Bad, "speakers unknown"},
		{g.Bookmark, canvas.Brand, "a bookmark"},
	}
	if m.o.Voices != "" {
		legend = append(legend, legendEntry{g.Recognised, canvas.Speaker(0), "named by a stored voice"})
	}
	return legend
}

// voicesText says where the stored voices are; "" = none are used.
func (m *model) voicesText() string {
	if m.o.Voices == "" || m.screen() == wireScreen {
		return ""
	}
	return "voices are stored in " + display.TerminalSafe(m.o.Voices)
}

// helpRows is how many rows of keys a page of the help has.
func (m *model) helpRows() int {
	rows := m.h - 1
	if m.voicesText() != "" {
		rows--
	}
	return max(rows, 1)
}

// helpBox is the size of the help in cells, and of its columns.
type helpBox struct{ key, text, rows, top, w, h int }

func (k helpBox) fits(w, h int) bool { return k.w <= w && k.h <= h }

func (m *model) helpBox(shown []binding) helpBox {
	k := helpBox{rows: (len(shown) + 1) / 2}
	for _, e := range m.legend() {
		k.text = max(k.text, len(e.text))
	}
	for _, b := range shown {
		k.key, k.text = max(k.key, canvas.Width(b.keyText(m.glyphs.ASCII))), max(k.text, canvas.Width(b.help))
	}
	k.top = 2
	k.w, k.h = 2+2*(k.key+2+k.text)+3+2, k.rows+(len(m.legend())+1)/2+5
	if k.h == m.h+1 { // without the blank row at the top
		k.top, k.h = 1, m.h
	}
	return k
}

func (m *model) drawHelpBox(c *canvas.Canvas, shown []binding, k helpBox) {
	x, y := (m.w-k.w)/2, (m.h-k.h)/2
	c.Box(x, y, k.w, k.h, " keys ")
	if m.screen() == wireScreen {
		c.TextRight(x+k.w-2, y, " "+m.keyOf("help")+" explains the figures ", canvas.Dim)
	}
	page, stream := m.addresses()
	if page != "" && stream != "" && canvas.Width(page)+10 <= k.w && m.screen() != wireScreen {
		c.TextRight(x+k.w-2, y, page, canvas.Dim)
		page = ""
	}
	if text := cmp.Or(page, stream); canvas.Width(text)+4 <= k.w {
		c.Text(x+2, y+k.h-1, k.w-4, text, canvas.Dim)
	}
	c.Fitted(x+2, y+k.h-2, k.w-4, m.voicesText(), (k.w-4)/2, canvas.Dim)
	columnWidth := k.key + 2 + k.text + 3
	for i, b := range shown {
		at, row := x+2+i/k.rows*columnWidth, y+k.top+i%k.rows
		c.Text(at, row, k.key, b.keyText(m.glyphs.ASCII), canvas.Brand.Bold())
		c.Text(at+k.key+2, row, k.text, b.help, canvas.Plain)
	}
	legend := m.legend()
	half := (len(legend) + 1) / 2
	for i, e := range legend {
		at, row := x+2+i/half*columnWidth, y+k.top+1+k.rows+i%half
		c.Text(at, row, k.key, e.glyph, e.style)
		c.Text(at+k.key+2, row, k.text, e.text, canvas.Dim)
	}
}

// addresses are the address of the page, and the id with which others can watch the stream;
// "" = none.
func (m *model) addresses() (page, stream string) {
	if m.state.Page != "" {
		page = " page " + m.state.Page + " "
	}
	if m.state.Stream != "" {
		stream = " stream " + display.TerminalSafe(m.state.Stream) + " "
	}
	return page, stream
}

// helpColumns is how many columns of keys fit on a page.
func (m *model) helpColumns(shown []binding) int {
	width := 0
	for _, b := range shown {
		width = max(width, canvas.Width(b.keyText(m.glyphs.ASCII))+2+canvas.Width(b.shortHelp()))
	}
	return max((m.w-1)/(width+1), 1)
}

// drawHelpPage covers the whole screen.
func (m *model) drawHelpPage(c *canvas.Canvas, shown []binding, pages int) {
	c.Fill(0, 0, m.w, m.h, "", canvas.Plain)
	title := "keys"
	if m.helpPages() > 1 {
		title = fmt.Sprintf("keys %d of %d, %s", m.help, pages, m.pageKeys())
	}
	used := c.Text(1, 0, m.w-2, title, canvas.Dim)
	page, stream := m.addresses()
	if text := cmp.Or(page, stream); used+canvas.Width(text)+3 <= m.w {
		c.TextRight(m.w-1, 0, text, canvas.Dim)
	}
	rows, columns := m.helpRows(), m.helpColumns(shown)
	c.Fitted(1, 1+rows, m.w-2, m.voicesText(), (m.w-2)/2, canvas.Dim)
	columnWidth := (m.w - 1) / columns
	shown = shown[min((m.help-1)*rows*columns, len(shown)):]
	for i, b := range shown[:min(len(shown), rows*columns)] {
		x, y := 1+i/rows*columnWidth, 1+i%rows
		x += c.Text(x, y, columnWidth-1, b.keyText(m.glyphs.ASCII), canvas.Brand.Bold()) + 2
		c.Text(x, y, 1+(i/rows+1)*columnWidth-x, b.shortHelp(), canvas.Plain)
	}
}
