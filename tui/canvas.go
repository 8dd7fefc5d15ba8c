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

// cell is one place of the screen. An empty text is a blank; cont marks the
// second half of a wide character that stands in the cell before.
type cell struct {
	text  string
	style style
	cont  bool
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

// split blanks a wide character of which one half is about to be overwritten.
func (c *canvas) split(x, y int) {
	i := y*c.w + x
	if c.cells[i].cont && x > 0 {
		c.cells[i-1] = cell{}
	}
	if x+1 < c.w && c.cells[i+1].cont {
		c.cells[i+1] = cell{}
	}
}

// text writes s from x on, at most width cells of it, and returns how many
// cells it took. What is left of the canvas or right of it is not drawn.
func (c *canvas) text(x, y, width int, s string, st style) int {
	used := 0
	for len(s) > 0 {
		if b := s[0]; b >= 0x20 && b < 0x7f && (len(s) == 1 || s[1] < 0x80) { // the common case, without looking for clusters
			if used+1 > width {
				break
			}
			c.set(x+used, y, s[:1], st)
			used++
			s = s[1:]
			continue
		}
		cluster, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		if cluster == "" {
			break
		}
		s = s[len(cluster):]
		if w == 0 || isControl(cluster) {
			continue
		}
		if used+w > width || x+used+w > c.w {
			break
		}
		c.set(x+used, y, cluster, st)
		for i := 1; i < w; i++ {
			c.set(x+used+i, y, "", st)
			c.cells[y*c.w+x+used+i].cont = true
		}
		if w > 1 { // set of the second half has blanked the first
			c.cells[y*c.w+x+used] = cell{text: cluster, style: st}
		}
		used += w
	}
	return used
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
	w := ansi.StringWidth(s)
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
		for _, cl := range row[:end] {
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
			if cl.text == "" {
				b.WriteByte(' ')
			} else {
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
