package tui

import (
	"fmt"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/wire"
)

// The help, over the upper part of the screen, in as many columns as there is room for:
//
//	keys 1 of 1, ? closes
//	q       quit                 m    merge two lanes
//	?       this help            ●    speaking now
//	r       name a speaker       ◆    a bookmark
//	stream 7c0e9a52-...
//	───────────────────────────────────────────────────
//
// On a smaller screen it is the keys with one word each, on as many pages as
// needed. Package wire has the pages for the wire view.

// helpEntry is a key, or a glyph of the screen, and its meaning.
type helpEntry struct {
	key   string
	style canvas.Style // of the key
	text  string
}

// helpGrid is where the entries are: column by column.
type helpGrid struct {
	entries       []helpEntry
	key           int // cells of all keys; 0 = each has its own width
	columns, rows int
}

func (g helpGrid) pages() int {
	perPage := g.columns * g.rows
	return (len(g.entries) + perPage - 1) / perPage
}

// helpGrid has everything if that fits on one page, otherwise the keys with one word each.
func (m *model) helpGrid() helpGrid {
	var full, short helpGrid
	for _, b := range m.helpBindings() {
		key := b.keyText(m.glyphs.ASCII)
		full.entries = append(full.entries, helpEntry{key, canvas.Brand.Bold(), b.help})
		short.entries = append(short.entries, helpEntry{key, canvas.Brand.Bold(), b.shortHelp()})
	}
	full.entries = append(full.entries, m.legend()...)
	text, width := 0, 0
	for _, e := range full.entries {
		full.key, text = max(full.key, canvas.Width(e.key)), max(text, canvas.Width(e.text))
	}
	for _, e := range short.entries {
		width = max(width, canvas.Width(e.key)+2+canvas.Width(e.text))
	}
	full.columns = max((m.w-1)/(full.key+2+text+2), 1)
	full.rows = (len(full.entries) + full.columns - 1) / full.columns
	short.columns, short.rows = max((m.w-1)/(width+1), 1), max(m.h-1-len(m.helpNotes()), 1)
	if full.rows <= short.rows {
		return full
	}
	return short
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

func (m *model) helpPages() int { return m.helpGrid().pages() + m.wireFiguresPages() }

func (m *model) legend() []helpEntry {
	g := m.glyphs
	if m.screen() == wireScreen {
		return []helpEntry{
			{g.Right, canvas.Dim, "sent"},
			{g.Left, canvas.Brand, "received"},
			{g.Rise[1], canvas.Good, "a chunk each 100 ms"},
			{g.Rise[8], canvas.Warn, "none for a second"},
			{g.Gap, canvas.Bad, "chunks or stream lost"},
		}
	}
	legend := []helpEntry{
		{g.Speaking, canvas.Speaker(0), "speaking now"},
		{g.PendingOpen + g.PendingOpen, canvas.Speaker(0), "not decided, open turn"},
		{g.Pending + g.Pending, canvas.Dim, "not decided yet"},
		{g.Overlap + g.Overlap, canvas.Warn, "several at once"},
		{g.GapFill + g.Gap, canvas.Bad, "speakers unknown"},
		{g.Bookmark, canvas.Brand, "a bookmark"},
	}
	if m.o.Voices != "" {
		legend = append(legend, helpEntry{g.Recognised, canvas.Speaker(0), "named by a stored voice"})
	}
	return legend
}

// helpNotes are the address of the page, the id with which others can watch the stream, and
// where the stored voices are.
func (m *model) helpNotes() (notes []string) {
	if m.screen() == wireScreen {
		return nil
	}
	if m.state.Page != "" {
		notes = append(notes, "page "+m.state.Page)
	}
	if m.state.Stream != "" {
		notes = append(notes, "stream "+display.TerminalSafe(m.state.Stream))
	}
	if m.o.Voices != "" {
		notes = append(notes, "voices are stored in "+display.TerminalSafe(m.o.Voices))
	}
	return notes
}

func (m *model) drawHelp(c *canvas.Canvas) {
	g, notes := m.helpGrid(), m.helpNotes()
	pages := g.pages()
	m.help = min(m.help, m.helpPages()) // a larger screen has fewer pages, and another view has others
	keys := m.keyOf("help") + " closes"
	if m.help < m.helpPages() {
		keys = m.keyOf("help") + " next, " + m.keyOf("back") + " closes"
	}
	if m.help > pages {
		wire.DrawFigures(c, m.wireFrame(), m.help-pages, keys)
		return
	}
	end := 1 + g.rows + len(notes)
	c.Fill(0, 0, m.w, end, "", canvas.Plain)
	c.Fill(0, end, m.w, 1, m.glyphs.Rule, canvas.Faint)
	c.Text(1, 0, m.w-2, fmt.Sprintf("keys %d of %d, %s", m.help, pages, keys), canvas.Dim)
	width := (m.w - 1) / g.columns
	perPage := g.columns * g.rows
	shown := g.entries[(m.help-1)*perPage:]
	for i, e := range shown[:min(len(shown), perPage)] {
		x, y := 1+i/g.rows*width, 1+i%g.rows
		textX := x + max(c.Text(x, y, width-1, e.key, e.style), g.key) + 2
		c.Text(textX, y, x+width-textX, e.text, canvas.Plain)
	}
	for i, note := range notes {
		c.Fitted(1, 1+g.rows+i, m.w-2, note, (m.w-2)/2, canvas.Dim)
	}
}
