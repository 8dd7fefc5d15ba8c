package tui

import (
	"fmt"
	"slices"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/wire"
)

// The help, over the upper part of the screen, in as many columns as there is room for:
//
//	keys, ? closes
//	q       quit                 m    merge two lanes
//	?       this help            ●    speaking now
//	r       name a speaker       ◆    a bookmark
//	stream 7c0e9a52-...
//	───────────────────────────────────────────────────
//
// On a smaller screen it is the keys with one word each, on as many pages as
// needed. The wire view has pages for its figures as well.

// helpEntry is a key, or another sign on the screen, and its meaning.
type helpEntry struct {
	key   string
	style canvas.Style // of the key
	text  string
}

// helpPage is a page of the help: entries column by column.
type helpPage struct {
	title         string
	entries       []helpEntry
	key           int // cells of all keys; 0 = each has its own width
	columns, rows int
}

// divide divides a page into those that have room for its entries.
func (p helpPage) divide() (pages []helpPage) {
	for entries := range slices.Chunk(p.entries, p.columns*p.rows) {
		pages = append(pages, helpPage{p.title, entries, p.key, p.columns, p.rows})
	}
	for i := range pages {
		if len(pages) > 1 {
			pages[i].title = fmt.Sprintf("%s %d of %d", p.title, i+1, len(pages))
		}
	}
	return pages
}

func (m *model) helpPages() []helpPage {
	pages := m.keyPage().divide()
	if m.screen() == wireScreen {
		pages = append(pages, m.figurePage().divide()...)
	}
	return pages
}

// keyPage has everything if that fits on one page, otherwise the keys with one word each.
func (m *model) keyPage() helpPage {
	full, short := helpPage{title: "keys"}, helpPage{title: "keys"}
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

// figurePage says what the figures of the wire view mean.
func (m *model) figurePage() helpPage {
	p := helpPage{title: "figures", columns: 1, rows: max(m.h-1, 1)}
	for _, f := range wire.Figures {
		p.key = max(p.key, canvas.Width(f.Name))
	}
	for _, f := range wire.Figures {
		for _, line := range canvas.WrapWords(f.Text, max(m.w-p.key-4, 10)) {
			p.entries = append(p.entries, helpEntry{f.Name, canvas.Brand.Bold(), line})
			f.Name = ""
		}
	}
	return p
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
	// A part of an address is of no use.
	notes = slices.DeleteFunc(notes, func(note string) bool { return canvas.Width(note) > m.w-2 })
	if m.o.Voices != "" {
		notes = append(notes, "voices are stored in "+display.TerminalSafe(m.o.Voices))
	}
	return notes
}

func (m *model) drawHelp(c *canvas.Canvas) {
	pages, notes := m.helpPages(), m.helpNotes()
	m.help = min(m.help, len(pages)) // a larger screen has fewer pages, and another view has others
	p, keys := pages[m.help-1], m.keyOf("help")+" closes"
	if m.help < len(pages) {
		keys = m.keyOf("help") + " next, " + m.keyOf("back") + " closes"
	}
	end := 1 + p.rows + len(notes)
	c.Fill(0, 0, m.w, end, "", canvas.Plain)
	c.Fill(0, end, m.w, 1, m.glyphs.Rule, canvas.Faint)
	c.Text(1, 0, m.w-2, p.title+", "+keys, canvas.Dim)
	width := (m.w - 1) / p.columns
	for i, e := range p.entries {
		x, y := 1+i/p.rows*width, 1+i%p.rows
		textX := x + max(c.Text(x, y, width-1, e.key, e.style), p.key) + 2
		c.Text(textX, y, x+width-textX, e.text, canvas.Plain)
	}
	for i, note := range notes {
		c.Fitted(1, 1+p.rows+i, m.w-2, note, (m.w-2)/2, canvas.Dim)
	}
}
