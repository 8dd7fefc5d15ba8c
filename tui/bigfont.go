package tui

import (
	"strings"
	"unicode"
)

// The letters of the presenter's view: 5 points wide, 7 high, and 2 more above
// them for accents. Each point is a square of half a cell's height, times a
// scale.
const (
	bigW, bigH = 5, 9
	bigAccent  = 2
)

// bigLetters has seven rows of each letter, from the top; the first five bits
// of a row are written as digits of base 2.
var bigLetters = letters(`
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

// sameShape are letters that look like Latin ones.
var sameShape = strings.NewReplacer(
	"А", "A", "Е", "E", "К", "K", "М", "M", "Н", "H", "О", "O", "Р", "P", "С", "C", "Т", "T", "Х", "X", "І", "I",
	"Ї", "Ï", "Ё", "Ë", "ẞ", "SS", "ß", "SS")

// accents has two rows of points for above a letter, and the letters that wear
// them, each pair as the whole and what is below.
var accents = []struct {
	rows  [bigAccent]uint8
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

type bigLetter [bigH]uint8

func letters(table string) map[rune]bigLetter {
	out := map[rune]bigLetter{' ': {}}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		fields := strings.Fields(line)
		var l bigLetter
		for i, row := range fields[1:] {
			for _, bit := range row {
				l[bigAccent+i] = l[bigAccent+i]<<1 | uint8(bit-'0')
			}
		}
		out[[]rune(fields[0])[0]] = l
	}
	for _, a := range accents {
		pairs := []rune(a.pairs)
		for i := 0; i+1 < len(pairs); i += 2 {
			l := out[pairs[i+1]]
			copy(l[:], a.rows[:])
			out[pairs[i]] = l
		}
	}
	return out
}

// bigWord is a line of text in big letters; false when the font lacks one.
func bigWord(text string) (word []bigLetter, ok bool) {
	for _, r := range sameShape.Replace(strings.Map(unicode.ToUpper, text)) {
		l, has := bigLetters[r]
		if !has {
			return nil, false
		}
		word = append(word, l)
	}
	return word, len(word) > 0
}

// points is how wide a word is, in points.
func points(word []bigLetter) int { return len(word)*(bigW+1) - 1 }

// bigRows is how many rows of the screen a line of letters takes at a scale.
func bigRows(scale int) int { return (bigH*scale + 1) / 2 }

// drawBig draws a word with its top left point in a cell.
func (m *model) drawBig(c *canvas, x, y, scale int, word []bigLetter, st style) {
	lit := func(px, py int) bool {
		if px < 0 || py >= bigH*scale {
			return false
		}
		px, py = px/scale, py/scale
		n := px / (bigW + 1)
		px %= bigW + 1
		return n < len(word) && px < bigW && word[n][py]>>(bigW-1-px)&1 != 0
	}
	for row := range bigRows(scale) {
		for col := range points(word) * scale {
			above, below := lit(col, 2*row), lit(col, 2*row+1)
			glyph := ""
			switch {
			case above && below:
				glyph = m.glyphs.part[8]
			case above:
				glyph = m.glyphs.upper
			case below:
				glyph = m.glyphs.lower
			}
			if glyph != "" {
				c.set(x+col, y+row, glyph, st)
			}
		}
	}
}
