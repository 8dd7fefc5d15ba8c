package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// attr is what a cell wears besides its colour.
type attr uint8

const (
	bold attr = 1 << iota
	reverse
)

// style is how a cell looks: a role, which the theme turns into a colour, and
// attributes.
type style struct {
	role role
	attr attr
}

func (s style) bold() style    { s.attr |= bold; return s }
func (s style) reverse() style { s.attr |= reverse; return s }

// cell is one place of the screen. An empty text is a blank; cont marks what a
// wide character in a cell before takes as well.
type cell struct {
	text  string
	style style
	cont  bool
	fix   bool // terminals differ how wide the text is
}

// canvas is the screen as a grid. Everything is drawn into it and nothing can
// be drawn outside of it, which is why no view is ever wider or higher than
// its terminal.
type canvas struct {
	w, h  int
	cells []cell
}

func newCanvas(w, h int) *canvas { return &canvas{w: w, h: h, cells: make([]cell, w*h)} }

// set puts one glyph of width 1 into a cell.
func (c *canvas) set(x, y int, glyph string, s style) {
	if x < 0 || y < 0 || x >= c.w || y >= c.h {
		return
	}
	c.split(x, y)
	c.cells[y*c.w+x] = cell{text: glyph, style: s}
}

// split blanks a wide character of which one part is about to be overwritten.
func (c *canvas) split(x, y int) {
	row := c.cells[y*c.w : (y+1)*c.w]
	for x > 0 && row[x].cont {
		x--
	}
	for i := x + 1; i < c.w && row[i].cont; i++ {
		row[x], row[i] = cell{}, cell{}
	}
}

// text writes s from x on, at most width cells of it, and returns how many
// cells it took. What is left of the canvas or right of it is not drawn.
func (c *canvas) text(x, y, width int, s string, st style) int {
	used := 0
	for len(s) > 0 {
		cluster, w, sure := nextCluster(s)
		s = s[len(cluster):]
		if w == 0 || isControl(cluster) {
			continue
		}
		if used+w > width || x+used+w > c.w {
			break
		}
		c.put(x+used, y, cluster, w, !sure, st)
		used += w
	}
	return used
}

// put sets a character that takes w cells.
func (c *canvas) put(x, y int, cluster string, w int, fix bool, st style) {
	if x < 0 || y < 0 || y >= c.h || x+w > c.w {
		return
	}
	for i := range w {
		c.split(x+i, y)
	}
	for i := range w {
		c.cells[y*c.w+x+i] = cell{style: st, cont: i > 0}
	}
	c.cells[y*c.w+x].text, c.cells[y*c.w+x].fix = cluster, fix
}

// isControl guards the terminal once more: whatever was forgotten to be
// cleaned is not drawn.
func isControl(cluster string) bool {
	for _, r := range cluster {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return true
		}
	}
	return false
}

// empty tells whether nothing was drawn into a cell yet.
func (c *canvas) empty(x, y int) bool {
	return x >= 0 && y >= 0 && x < c.w && y < c.h && c.cells[y*c.w+x].blank()
}

// right writes s so that it ends before x.
func (c *canvas) right(x, y int, s string, st style) int {
	w := textWidth(s)
	return c.text(x-w, y, w, s, st)
}

// clear blanks a rectangle.
func (c *canvas) clear(x, y, w, h int) {
	for j := max(y, 0); j < min(y+h, c.h); j++ {
		for i := max(x, 0); i < min(x+w, c.w); i++ {
			c.split(i, j)
			c.cells[j*c.w+i] = cell{}
		}
	}
}

// render is the canvas as text with escape sequences: h lines, each ending in
// the terminal's own style, without trailing blanks.
func (c *canvas) render(t *theme) string {
	var b strings.Builder
	b.Grow(c.w * c.h * 2)
	for y := range c.h {
		if y > 0 {
			b.WriteByte('\n')
		}
		row := c.cells[y*c.w : (y+1)*c.w]
		end := len(row)
		for end > 0 && row[end-1].blank() {
			end--
		}
		cur := style{}
		for x, cl := range row[:end] {
			if cl.cont {
				continue
			}
			want := cl.style
			if cl.blank() && cur.attr&reverse == 0 {
				want = cur // a blank looks the same in any style
			}
			if want != cur {
				t.change(&b, cur, want)
				cur = want
			}
			switch {
			case cl.text == "":
				b.WriteByte(' ')
			case cl.fix && !t.plain:
				w := 1
				for x+w < len(row) && row[x+w].cont {
					w++
				}
				// Erase what is under it, write it, go on behind it.
				b.WriteString(ansi.EraseCharacter(w))
				b.WriteString(cl.text)
				b.WriteString(ansi.CursorHorizontalAbsolute(x + w + 1))
			default:
				b.WriteString(cl.text)
			}
		}
		if cur != (style{}) {
			t.change(&b, cur, style{})
		}
	}
	return b.String()
}

func (c cell) blank() bool {
	return !c.cont && (c.text == "" || c.text == " ") && c.style.attr&reverse == 0
}
