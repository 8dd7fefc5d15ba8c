// Package canvas is the screen as a grid of cells: what a cell holds, how wide
// a character is, which glyphs a terminal can show, and which colours it has.
// It knows nothing of what is drawn.
package canvas

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Canvas is a grid of Width by Height cells. Drawing outside of it has no
// effect, so that a rendered screen is never larger than its terminal.
type Canvas struct {
	Width, Height int
	glyphs        *Glyphs
	cells         []cell
}

// cell is one place of the grid. An empty text is a blank.
type cell struct {
	text         string
	style        Style
	continuation bool // part of the wide character to the left
	variable     bool // terminals disagree about the width of text
}

// New returns an empty canvas that is drawn on with some glyphs.
func New(width, height int, g *Glyphs) *Canvas {
	return &Canvas{Width: width, Height: height, glyphs: g, cells: make([]cell, width*height)}
}

// Set puts one glyph of width 1 into a cell.
func (c *Canvas) Set(x, y int, glyph string, s Style) { c.setCluster(x, y, glyph, 1, false, s) }

// Text writes s from x on, at most width cells of it, and returns the number of
// cells used. What does not fit on the canvas is cut.
func (c *Canvas) Text(x, y, width int, s string, st Style) int {
	used := 0
	for len(s) > 0 {
		cluster, w, fixed := nextCluster(s)
		s = s[len(cluster):]
		if w == 0 || strings.ContainsFunc(cluster, unicode.IsControl) { // the last guard of the terminal
			continue
		}
		if used+w > width || x+used+w > c.Width {
			break
		}
		c.setCluster(x+used, y, cluster, w, !fixed, st)
		used += w
	}
	return used
}

// Fitted writes s as Text does, shortened by Fit.
func (c *Canvas) Fitted(x, y, width int, s string, tail int, st Style) int {
	return c.Text(x, y, width, Fit(s, width, tail, c.glyphs.Ellipsis), st)
}

// TextRight writes s so that it ends before x, and returns the number of cells
// used.
func (c *Canvas) TextRight(x, y int, s string, st Style) int {
	w := Width(s)
	return c.Text(x-w, y, w, s, st)
}

// setCluster sets a character of w cells.
func (c *Canvas) setCluster(x, y int, cluster string, w int, variable bool, st Style) {
	if x < 0 || y < 0 || y >= c.Height || x+w > c.Width {
		return
	}
	for i := range w {
		c.clearWide(x+i, y)
	}
	for i := range w {
		c.cells[y*c.Width+x+i] = cell{style: st, continuation: i > 0}
	}
	first := &c.cells[y*c.Width+x]
	first.text, first.variable = cluster, variable
}

// clearWide blanks the wide character that covers a cell about to be
// overwritten.
func (c *Canvas) clearWide(x, y int) {
	row := c.cells[y*c.Width : (y+1)*c.Width]
	for x > 0 && row[x].continuation {
		x--
	}
	for i := x + 1; i < c.Width && row[i].continuation; i++ {
		row[x], row[i] = cell{}, cell{}
	}
}

// Blank reports whether nothing was drawn into a cell of the canvas yet.
func (c *Canvas) Blank(x, y int) bool {
	return x >= 0 && y >= 0 && x < c.Width && y < c.Height && c.cells[y*c.Width+x].blank()
}

func (c cell) blank() bool {
	return !c.continuation && (c.text == "" || c.text == " ") && c.style&reverse == 0
}

// Fill puts one glyph of width 1 into each cell of a rectangle; "" blanks it.
func (c *Canvas) Fill(x, y, width, height int, glyph string, s Style) {
	for j := max(y, 0); j < min(y+height, c.Height); j++ {
		for i := max(x, 0); i < min(x+width, c.Width); i++ {
			c.Set(i, j, glyph, s)
		}
	}
}

// Segment is a part of a line that may be omitted when there is no room.
type Segment struct {
	Text  string
	Style Style
	// Rank says which segments are omitted first: those with the highest. A
	// segment of rank 0 always stays.
	Rank int
}

// NewSegment returns a segment with a rank.
func NewSegment(text string, style Style, rank int) Segment { return Segment{text, style, rank} }

// Line is a line of segments.
type Line []Segment

// Add adds a segment at the end.
func (l *Line) Add(text string, style Style, rank int) { *l = append(*l, Segment{text, style, rank}) }

// Line writes the segments that have a text, with gap cells between them. While they do not
// fit into width, the segment with the highest rank is omitted; what is still too long is cut
// at its end.
func (c *Canvas) Line(x, y, width int, segments Line, gap int) {
	kept := slices.DeleteFunc(slices.Clone(segments), func(s Segment) bool { return s.Text == "" })
	for {
		total, worst := -gap, -1
		for i, s := range kept {
			total += Width(s.Text) + gap
			if s.Rank > 0 && (worst < 0 || s.Rank >= kept[worst].Rank) {
				worst = i
			}
		}
		if total <= width || worst < 0 {
			break
		}
		kept = slices.Delete(kept, worst, worst+1)
	}
	for end := x + width; len(kept) > 0 && x < end; kept = kept[1:] {
		x += c.Fitted(x, y, end-x, kept[0].Text, 0, kept[0].Style) + gap
	}
}

// Render returns the canvas as text with escape sequences: Height lines, each
// ending in the terminal's default style, without trailing blanks.
func (c *Canvas) Render(t *Theme) string {
	var b strings.Builder
	b.Grow(c.Width * c.Height * 2)
	for y := range c.Height {
		if y > 0 {
			b.WriteByte('\n')
		}
		renderRow(&b, c.cells[y*c.Width:(y+1)*c.Width], t)
	}
	return b.String()
}

func renderRow(b *strings.Builder, row []cell, t *Theme) {
	end := len(row)
	for end > 0 && row[end-1].blank() {
		end--
	}
	current := Plain
	for x, cl := range row[:end] {
		if cl.continuation {
			continue
		}
		if cl.style != current && (!cl.blank() || current&reverse != 0) { // else a blank looks the same in any style
			t.change(b, current, cl.style)
			current = cl.style
		}
		switch {
		case cl.text == "":
			b.WriteByte(' ')
		case cl.variable && !t.plain:
			w := 1
			for x+w < len(row) && row[x+w].continuation {
				w++
			}
			// Erase the cells, write, and set the cursor behind them: whatever
			// width the terminal assumes, the rest of the line is in place.
			b.WriteString(ansi.EraseCharacter(w))
			b.WriteString(cl.text)
			b.WriteString(ansi.CursorHorizontalAbsolute(x + w + 1))
		default:
			b.WriteString(cl.text)
		}
	}
	t.change(b, current, Plain)
}
