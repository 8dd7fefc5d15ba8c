package canvas

import (
	"slices"
	"strings"
	"unicode"
)

// Large text is drawn from a font of letters that are 5 points wide and 7 high,
// with 2 more above them for accents. At scale 1 a point is as wide as a cell
// and half as high.
const (
	letterWidth  = 5
	letterHeight = 9
	accentHeight = 2
)

// font has seven rows of each letter, from the top; each digit is a point.
var font = parseFont(`
A 01110 10001 10001 11111 10001 10001 10001
B 11110 10001 10001 11110 10001 10001 11110
C 01111 10000 10000 10000 10000 10000 01111
D 11110 10001 10001 10001 10001 10001 11110
E 11111 10000 10000 11110 10000 10000 11111
F 11111 10000 10000 11110 10000 10000 10000
G 01111 10000 10000 10011 10001 10001 01111
H 10001 10001 10001 11111 10001 10001 10001
I 01110 00100 00100 00100 00100 00100 01110
J 00111 00010 00010 00010 00010 10010 01100
K 10001 10010 10100 11000 10100 10010 10001
L 10000 10000 10000 10000 10000 10000 11111
M 10001 11011 10101 10101 10001 10001 10001
N 10001 11001 10101 10101 10011 10001 10001
O 01110 10001 10001 10001 10001 10001 01110
P 11110 10001 10001 11110 10000 10000 10000
Q 01110 10001 10001 10001 10101 10010 01101
R 11110 10001 10001 11110 10100 10010 10001
S 01111 10000 10000 01110 00001 00001 11110
T 11111 00100 00100 00100 00100 00100 00100
U 10001 10001 10001 10001 10001 10001 01110
V 10001 10001 10001 10001 01010 01010 00100
W 10001 10001 10001 10101 10101 11011 10001
X 10001 10001 01010 00100 01010 10001 10001
Y 10001 10001 01010 00100 00100 00100 00100
Z 11111 00001 00010 00100 01000 10000 11111
0 01110 10001 10011 10101 11001 10001 01110
1 00100 01100 00100 00100 00100 00100 01110
2 01110 10001 00001 00110 01000 10000 11111
3 11110 00001 00001 01110 00001 00001 11110
4 00010 00110 01010 10010 11111 00010 00010
5 11111 10000 11110 00001 00001 10001 01110
6 00110 01000 10000 11110 10001 10001 01110
7 11111 00001 00010 00100 01000 01000 01000
8 01110 10001 10001 01110 10001 10001 01110
9 01110 10001 10001 01111 00001 00010 01100
. 00000 00000 00000 00000 00000 00000 00100
, 00000 00000 00000 00000 00000 00100 01000
- 00000 00000 00000 01110 00000 00000 00000
_ 00000 00000 00000 00000 00000 00000 11111
' 00100 00100 01000 00000 00000 00000 00000
& 01100 10010 10100 01000 10101 10010 01101
( 00010 00100 01000 01000 01000 00100 00010
) 01000 00100 00010 00010 00010 00100 01000
+ 00000 00100 00100 11111 00100 00100 00000
/ 00001 00001 00010 00100 01000 10000 10000
# 01010 01010 11111 01010 11111 01010 01010
Ø 01110 10011 10011 10101 11001 11001 01110
Æ 01111 10100 10100 11110 10100 10100 10111
Б 11111 10000 10000 11110 10001 10001 11110
В 11110 10001 10001 11110 10001 10001 11110
Г 11111 10000 10000 10000 10000 10000 10000
Д 00110 01010 01010 01010 01010 11111 10001
Ж 10101 10101 01110 00100 01110 10101 10101
З 11110 00001 00001 01110 00001 00001 11110
И 10001 10001 10011 10101 11001 10001 10001
Л 00111 01001 01001 01001 01001 01001 10001
П 11111 10001 10001 10001 10001 10001 10001
У 10001 10001 10001 01111 00001 00001 11110
Ф 00100 01110 10101 10101 10101 01110 00100
Ц 10010 10010 10010 10010 10010 11111 00001
Ч 10001 10001 10001 01111 00001 00001 00001
Ш 10101 10101 10101 10101 10101 10101 11111
Щ 10101 10101 10101 10101 10101 11111 00001
Ъ 11000 01000 01000 01110 01001 01001 01110
Ы 10001 10001 10001 11101 10011 10011 11101
Ь 10000 10000 10000 11110 10001 10001 11110
Э 11110 00001 00001 01111 00001 00001 11110
Ю 10010 10101 10101 11101 10101 10101 10010
Я 01111 10001 10001 01111 00101 01001 10001
`)

// sameShape maps letters that look like Latin ones.
var sameShape = strings.NewReplacer(
	"А", "A", "Е", "E", "К", "K", "М", "M", "Н", "H", "О", "O", "Р", "P", "С", "C", "Т", "T", "Х", "X", "І", "I",
	"Ї", "Ï", "Ё", "Ë", "ẞ", "SS", "ß", "SS")

// accents has the two rows above a letter, and the letters with that accent,
// each followed by the letter without it.
var accents = []struct {
	rows  [accentHeight]uint8
	pairs string
}{
	{[...]uint8{0b00010, 0b00100}, "ÁAÉEÍIÓOÚUÝYĆCŃNŚSŹZŔRĹL"},
	{[...]uint8{0b01000, 0b00100}, "ÀAÈEÌIÒOÙU"},
	{[...]uint8{0b00100, 0b01010}, "ÂAÊEÎIÔOÛUŴWŶYĈCĜGĤHĴJŜS"},
	{[...]uint8{0b01010, 0b00000}, "ÄAËEÏIÖOÜUŸY"},
	{[...]uint8{0b01101, 0b10010}, "ÃAÑNÕOĨIŨU"},
	{[...]uint8{0b01010, 0b00100}, "ČCĎDĚEŇNŘRŠSŤTŽZĞGĂAŬUЙИЎУ"},
	{[...]uint8{0b00100, 0b00000}, "ÅAŮUŻZİIĖE"},
	{[...]uint8{0b01010, 0b10100}, "ŐOŰU"},
	{[...]uint8{0b01110, 0b00000}, "ĀAĒEĪIŌOŪU"},
}

// letter is the points of each row, bit 4 the leftmost.
type letter [letterHeight]uint8

func parseFont(table string) map[rune]letter {
	out := map[rune]letter{' ': {}}
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		fields := strings.Fields(line)
		var l letter
		for i, row := range fields[1:] {
			for _, bit := range row {
				l[accentHeight+i] = l[accentHeight+i]<<1 | uint8(bit-'0')
			}
		}
		out[[]rune(fields[0])[0]] = l
	}
	for _, a := range accents {
		for pair := range slices.Chunk([]rune(a.pairs), 2) {
			l := out[pair[1]]
			copy(l[:], a.rows[:])
			out[pair[0]] = l
		}
	}
	return out
}

// BigText is one line of text in large letters.
type BigText []letter

// NewBigText returns false when the text is empty or the font lacks a letter.
func NewBigText(text string) (big BigText, ok bool) {
	for _, r := range sameShape.Replace(strings.Map(unicode.ToUpper, text)) {
		l, has := font[r]
		if !has {
			return nil, false
		}
		big = append(big, l)
	}
	return big, len(big) > 0
}

// Width is the width of the text in cells, at scale 1.
func (b BigText) Width() int { return len(b)*(letterWidth+1) - 1 }

// BigTextRows is the number of rows that a line of large text takes at a scale.
func BigTextRows(scale int) int { return (letterHeight*scale + 1) / 2 }

// point reports whether a point of the text is set, counted from its top left.
func (b BigText) point(x, y int) bool {
	if x < 0 || y >= letterHeight {
		return false
	}
	n, column := x/(letterWidth+1), x%(letterWidth+1)
	return n < len(b) && column < letterWidth && b[n][y]>>(letterWidth-1-column)&1 != 0
}

// BigText draws large text with its top left point in a cell.
func (c *Canvas) BigText(x, y, scale int, text BigText, s Style) {
	for row := range BigTextRows(scale) {
		for column := range text.Width() * scale {
			upper := text.point(column/scale, 2*row/scale)
			lower := text.point(column/scale, (2*row+1)/scale)
			glyph := ""
			switch {
			case upper && lower:
				glyph = c.glyphs.Block[Subcells]
			case upper:
				glyph = c.glyphs.UpperHalf
			case lower:
				glyph = c.glyphs.LowerHalf
			}
			if glyph != "" {
				c.Set(x+column, y+row, glyph, s)
			}
		}
	}
}
