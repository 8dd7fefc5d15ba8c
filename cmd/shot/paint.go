package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// A cell in points, and the border around the screen.
const (
	cellW  = 10
	cellH  = 20
	border = 18
)

// colours are a terminal's own.
type colours struct{ fg, bg color.RGBA }

var (
	darkTerminal  = colours{fg: color.RGBA{0xd8, 0xdb, 0xe0, 255}, bg: color.RGBA{0x16, 0x18, 0x1d, 255}}
	lightTerminal = colours{fg: color.RGBA{0x24, 0x28, 0x2e, 255}, bg: color.RGBA{0xfc, 0xfc, 0xfa, 255}}
)

// painter draws screens. Letters come from the Go fonts; block elements and
// box drawing are drawn as rectangles, so that they meet without a seam.
type painter struct {
	scale         int
	own           colours
	regular, bold font.Face
	baseline      int
}

func newPainter(scale int, own colours) (*painter, error) {
	p := &painter{scale: scale, own: own}
	var err error
	// The advance of Go Mono is 0.6 of its size.
	size := float64(cellW*scale) / 0.6
	face := func(ttf []byte) font.Face {
		f, e := opentype.Parse(ttf)
		if e == nil {
			var fc font.Face
			if fc, e = opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone}); e == nil {
				return fc
			}
		}
		err = fmt.Errorf("font: %w", e)
		return nil
	}
	p.regular, p.bold = face(gomono.TTF), face(gomonobold.TTF)
	if err != nil {
		return nil, err
	}
	m := p.regular.Metrics()
	p.baseline = (cellH*scale + m.Ascent.Round() - m.Descent.Round()) / 2
	return p, nil
}

func (p *painter) paint(s screen) image.Image {
	w, h := 0, len(s)
	if h > 0 {
		w = len(s[0])
	}
	img := image.NewRGBA(image.Rect(0, 0, (w*cellW+2*border)*p.scale, (h*cellH+2*border)*p.scale))
	draw.Draw(img, img.Bounds(), image.NewUniform(p.own.bg), image.Point{}, draw.Src)
	for y, row := range s {
		for x, g := range row {
			p.cell(img, (border+x*cellW)*p.scale, (border+y*cellH)*p.scale, g)
		}
	}
	return img
}

func (p *painter) cell(img *image.RGBA, x, y int, g glyph) {
	fg, bg := p.own.fg, p.own.bg
	if g.look.fg != nil {
		fg = *g.look.fg
	}
	if g.look.bg != nil {
		bg = *g.look.bg
	}
	if g.look.reverse {
		fg, bg = bg, fg
	}
	w, h := cellW*p.scale, cellH*p.scale
	if g.wide {
		w *= 2
	}
	box := image.Rect(x, y, x+w, y+h)
	if bg != p.own.bg {
		fill(img, box, bg)
	}
	if g.text == "" || g.text == " " {
		return
	}
	r, _ := utf8.DecodeRuneInString(g.text)
	if p.block(img, box, r, fg, bg) || p.line(img, box, r, fg) || p.shape(img, box, r, fg) {
		return
	}
	face := p.regular
	if g.look.bold {
		face = p.bold
	}
	d := font.Drawer{Dst: img, Src: image.NewUniform(fg), Face: face, Dot: fixed.P(x, y+p.baseline)}
	d.DrawString(g.text)
}

func fill(img *image.RGBA, r image.Rectangle, c color.RGBA) {
	draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// block draws the block elements U+2580 to U+2595.
func (p *painter) block(img *image.RGBA, b image.Rectangle, r rune, fg, bg color.RGBA) bool {
	w, h := b.Dx(), b.Dy()
	switch {
	case r == '▀':
		b.Max.Y = b.Min.Y + h/2
	case r >= '▁' && r <= '█': // eighths from below
		b.Min.Y = b.Max.Y - h*int(r-'▁'+1)/8
	case r >= '▉' && r <= '▏': // eighths from the left, fewer and fewer
		b.Max.X = b.Min.X + w*int('▏'-r+1)/8
	case r == '▐':
		b.Min.X += w / 2
	case r >= '░' && r <= '▓':
		fg = mix(bg, fg, []float64{0.25, 0.5, 0.75}[r-'░'])
	case r == '▔':
		b.Max.Y = b.Min.Y + h/8
	case r == '▕':
		b.Min.X = b.Max.X - w/8
	case r == '■':
		b = image.Rect(b.Min.X+w/5, b.Min.Y+h/2-w*3/10, b.Max.X-w/5, b.Min.Y+h/2+w*3/10)
	case r == '●':
		disc(img, b, fg, float64(w)*0.36, 0)
		return true
	case r == '○':
		disc(img, b, fg, float64(w)*0.36, float64(w)*0.24)
		return true
	default:
		return false
	}
	fill(img, b, fg)
	return true
}

func mix(a, b color.RGBA, part float64) color.RGBA {
	f := func(x, y uint8) uint8 { return uint8(float64(x) + part*(float64(y)-float64(x))) }
	return color.RGBA{f(a.R, b.R), f(a.G, b.G), f(a.B, b.B), 255}
}

// disc draws a ring between two radii around the middle, with soft edges.
func disc(img *image.RGBA, b image.Rectangle, c color.RGBA, outer, inner float64) {
	cx, cy := float64(b.Min.X+b.Max.X)/2, float64(b.Min.Y+b.Max.Y)/2
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			hit := 0
			for i := range 16 {
				dx, dy := float64(x)+float64(i%4)/4+0.125-cx, float64(y)+float64(i/4)/4+0.125-cy
				if d := dx*dx + dy*dy; d <= outer*outer && d >= inner*inner {
					hit++
				}
			}
			if hit > 0 {
				img.SetRGBA(x, y, mix(img.RGBAAt(x, y), c, float64(hit)/16))
			}
		}
	}
}

// arms says to which sides a box drawing character goes: 1 left, 2 right,
// 4 up, 8 down.
var arms = map[rune]int{
	'─': 1 | 2, '│': 4 | 8, '┬': 1 | 2 | 8, '┴': 1 | 2 | 4, '┼': 15, '├': 2 | 4 | 8, '┤': 1 | 4 | 8,
	'╭': 2 | 8, '╮': 1 | 8, '╰': 2 | 4, '╯': 1 | 4, '┌': 2 | 8, '┐': 1 | 8, '└': 2 | 4, '┘': 1 | 4,
	'╴': 1, '╶': 2, '╵': 4, '╷': 8, '━': 1 | 2, '╸': 1, '┣': 2 | 4 | 8, '┫': 1 | 4 | 8,
}

// shape draws what is neither straight nor a block: diagonals and a diamond.
func (p *painter) shape(img *image.RGBA, b image.Rectangle, r rune, c color.RGBA) bool {
	w, h := float64(b.Dx()), float64(b.Dy())
	thick := 0.9 * float64(p.scale)
	var inside func(x, y float64) bool
	rising := func(x, y float64) bool { return math.Abs(x*h+y*w-w*h)/math.Hypot(w, h) < thick }
	falling := func(x, y float64) bool { return math.Abs(x*h-y*w)/math.Hypot(w, h) < thick }
	switch r {
	case '◆':
		inside = func(x, y float64) bool { return math.Abs(x-w/2)+math.Abs(y-h/2) <= w*0.46 }
	case '╱':
		inside = rising
	case '╲':
		inside = falling
	case '╳':
		inside = func(x, y float64) bool { return rising(x, y) || falling(x, y) }
	default:
		return false
	}
	for y := range b.Dy() {
		for x := range b.Dx() {
			hit := 0
			for i := range 16 {
				if inside(float64(x)+float64(i%4)/4+0.125, float64(y)+float64(i/4)/4+0.125) {
					hit++
				}
			}
			if hit > 0 {
				at := img.RGBAAt(b.Min.X+x, b.Min.Y+y)
				img.SetRGBA(b.Min.X+x, b.Min.Y+y, mix(at, c, float64(hit)/16))
			}
		}
	}
	return true
}

// line draws box drawing characters.
func (p *painter) line(img *image.RGBA, b image.Rectangle, r rune, c color.RGBA) bool {
	t := max(p.scale*3/2, 1)
	if r == '━' || r == '╸' || r == '┣' || r == '┫' {
		t = 4 * p.scale
	}
	x, y := (b.Min.X+b.Max.X-t)/2, (b.Min.Y+b.Max.Y-t)/2
	if r == '┊' || r == '┆' {
		n := 4
		for i := range n {
			top := b.Min.Y + b.Dy()*i/n + b.Dy()/(4*n)
			fill(img, image.Rect(x, top, x+t, top+b.Dy()/(2*n)), c)
		}
		return true
	}
	a := arms[r]
	if a == 0 {
		return false
	}
	if a == 1 {
		fill(img, image.Rect(b.Min.X, y, (b.Min.X+b.Max.X)/2, y+t), c)
	} else if a&1 != 0 {
		fill(img, image.Rect(b.Min.X, y, x+t, y+t), c)
	}
	if a&2 != 0 {
		fill(img, image.Rect(x, y, b.Max.X, y+t), c)
	}
	if a&4 != 0 {
		fill(img, image.Rect(x, b.Min.Y, x+t, y+t), c)
	}
	if a&8 != 0 {
		fill(img, image.Rect(x, y, x+t, b.Max.Y), c)
	}
	return true
}
