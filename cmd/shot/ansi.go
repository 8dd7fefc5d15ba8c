package main

import (
	"image/color"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// look is how a cell is drawn. A nil colour is the terminal's own.
type look struct {
	fg, bg        *color.RGBA
	bold, reverse bool
}

// glyph is one cell of a screen.
type glyph struct {
	text string
	look look
	wide bool // takes the next cell as well
}

// screen is rows of cells.
type screen [][]glyph

// parse reads what `tmux capture-pane -e -p` prints: lines of text with SGR
// sequences and no other ones. What does not fit into w x h is cut.
func parse(text string, w, h int) screen {
	s := make(screen, h)
	for i := range s {
		s[i] = make([]glyph, w)
	}
	var cur look
	x, y := 0, 0
	for len(text) > 0 && y < h {
		switch {
		case text[0] == '\n':
			x, y, text = 0, y+1, text[1:]
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			if end < 0 {
				return s
			}
			if text[2+end] == 'm' {
				cur.apply(text[2 : 2+end])
			}
			text = text[2+end+1:]
		case text[0] < 0x20:
			text = text[1:]
		default:
			cluster, n := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
			text = text[len(cluster):]
			if n == 0 || x+n > w {
				x += n
				continue
			}
			s[y][x] = glyph{text: cluster, look: cur, wide: n > 1}
			for i := 1; i < n; i++ {
				s[y][x+i] = glyph{look: cur}
			}
			x += n
		}
	}
	return s
}

// apply changes the look as the parameters of one SGR sequence say.
func (l *look) apply(params string) {
	var ps []int
	for _, p := range strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' }) {
		n, _ := strconv.Atoi(p)
		ps = append(ps, n)
	}
	if len(ps) == 0 {
		ps = []int{0}
	}
	for i := 0; i < len(ps); i++ {
		switch p := ps[i]; {
		case p == 0:
			*l = look{}
		case p == 1:
			l.bold = true
		case p == 22:
			l.bold = false
		case p == 7:
			l.reverse = true
		case p == 27:
			l.reverse = false
		case p == 39:
			l.fg = nil
		case p == 49:
			l.bg = nil
		case p >= 30 && p <= 37:
			l.fg = indexed(p - 30)
		case p >= 90 && p <= 97:
			l.fg = indexed(p - 90 + 8)
		case p >= 40 && p <= 47:
			l.bg = indexed(p - 40)
		case p >= 100 && p <= 107:
			l.bg = indexed(p - 100 + 8)
		case (p == 38 || p == 48) && i+2 < len(ps) && ps[i+1] == 5:
			l.paint(p, indexed(ps[i+2]))
			i += 2
		case (p == 38 || p == 48) && i+4 < len(ps) && ps[i+1] == 2:
			l.paint(p, &color.RGBA{uint8(ps[i+2]), uint8(ps[i+3]), uint8(ps[i+4]), 255})
			i += 4
		}
	}
}

func (l *look) paint(p int, c *color.RGBA) {
	if p == 38 {
		l.fg = c
	} else {
		l.bg = c
	}
}

// base16 are the colours that a terminal chooses itself, here xterm's.
var base16 = [16]color.RGBA{
	{0, 0, 0, 255}, {205, 0, 0, 255}, {0, 205, 0, 255}, {205, 205, 0, 255},
	{0, 0, 238, 255}, {205, 0, 205, 255}, {0, 205, 205, 255}, {229, 229, 229, 255},
	{127, 127, 127, 255}, {255, 0, 0, 255}, {0, 255, 0, 255}, {255, 255, 0, 255},
	{92, 92, 255, 255}, {255, 0, 255, 255}, {0, 255, 255, 255}, {255, 255, 255, 255},
}

// indexed is a colour of the 256 that xterm numbers.
func indexed(n int) *color.RGBA {
	switch {
	case n < 0 || n > 255:
		return nil
	case n < 16:
		c := base16[n]
		return &c
	case n >= 232:
		v := uint8(8 + 10*(n-232))
		return &color.RGBA{v, v, v, 255}
	}
	step := func(i int) uint8 {
		if i == 0 {
			return 0
		}
		return uint8(55 + 40*i)
	}
	n -= 16
	return &color.RGBA{step(n / 36), step(n / 6 % 6), step(n % 6), 255}
}
