package tui

import "math/bits"

// glyphs are the characters that the screen draws with: all of them one cell
// wide in every terminal.
type glyphs struct {
	ascii bool // nothing beyond ASCII
	// part[n] fills n eighths of a cell from the left.
	part [9]string
	// end[n] fills n eighths from the right, as well as it can be done
	// without swapping the colours; used where swapping is not possible.
	end [9]string
	// swap says that part in swapped colours is a finer end.
	swap bool

	openHatch, hatch      string // undecided, with and without an open turn
	rule, tick, grid      string
	thin, halfThin        string // a bar thinner than a row
	speaking, live, idle  string
	failed, done          string
	arrow, dot, ellipsis  string
	meterLeft, meterRight string
	up, down, left, right string
	rise                  [9]string // rise[n] fills n eighths from below
	upper, lower          string    // half a cell
	overlap, gap          string    // on the rule: several at once, never sent
	gapFill               string    // in the lanes, where nobody knows
	mark1, markLine       string    // a bookmark, and its line through the lanes
	mapLeft, mapRight     string    // around the window, on the minimap
	selected              string
	boxH, boxV            string
	boxTL, boxTR, boxBL   string
	boxBR                 string
}

var unicodeGlyphs = glyphs{
	part:      [9]string{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"},
	end:       [9]string{" ", "▕", "▕", "▐", "▐", "▐", "█", "█", "█"},
	swap:      true,
	openHatch: "▒", hatch: "░",
	rule: "─", tick: "┬", grid: "┊", thin: "━", halfThin: "╸",
	speaking: "●", live: "●", idle: "○", failed: "×", done: "■",
	arrow: "→", dot: "·", ellipsis: "…",
	meterLeft: "▕", meterRight: "▏",
	up: "↑", down: "↓", left: "←", right: "→",
	rise:  [9]string{"▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	upper: "▀", lower: "▄",
	overlap: "━", gap: "╳", gapFill: "╱", mark1: "◆", markLine: "┆",
	mapLeft: "┣", mapRight: "┫", selected: "▌",
	boxH: "─", boxV: "│", boxTL: "╭", boxTR: "╮", boxBL: "╰", boxBR: "╯",
}

var asciiGlyphs = glyphs{
	ascii:     true,
	part:      [9]string{" ", "-", "-", "-", "-", "#", "#", "#", "#"},
	end:       [9]string{" ", "-", "-", "-", "-", "#", "#", "#", "#"},
	openHatch: ":", hatch: ".",
	rule: "-", tick: "+", grid: " ", thin: "=", halfThin: "-",
	speaking: "*", live: "*", idle: "o", failed: "x", done: "#",
	arrow: "->", dot: "|", ellipsis: "~",
	meterLeft: "[", meterRight: "]",
	up: "^", down: "v", left: "<", right: ">",
	rise:  [9]string{" ", ".", ".", ":", ":", "=", "=", "#", "#"},
	upper: "#", lower: "#",
	overlap: "=", gap: "x", gapFill: "/", mark1: "@", markLine: " ",
	mapLeft: "[", mapRight: "]", selected: ">",
	boxH: "-", boxV: "|", boxTL: "+", boxTR: "+", boxBL: "+", boxBR: "+",
}

func glyphsFor(ascii, plain bool) *glyphs {
	g := unicodeGlyphs
	if ascii {
		g = asciiGlyphs
	}
	if plain {
		g.swap = false
	}
	return &g
}

// mark gives the glyph for a cell of which a mask's eighths are filled, bit 0
// the leftmost, and whether its colours are to be swapped.
//
// One glyph can show one edge. A cell with more of them keeps how much is
// filled, and its place as well as possible: a short turn within the cell goes
// to the nearer side, and so does a short gap, because a gap that is a little
// off tells the truth better than none.
func (g *glyphs) mark(mask uint8) (glyph string, swapped bool) {
	n := bits.OnesCount8(mask)
	switch {
	case n == 0:
		return "", false
	case n == 8:
		return g.part[8], false
	}
	if fromLeft(mask) {
		return g.part[n], false
	}
	if g.swap {
		return g.part[8-n], true
	}
	return g.end[n], false
}

// fromLeft says whether a partly filled cell is drawn filled from the left.
func fromLeft(mask uint8) bool {
	first, last := mask&1 != 0, mask&0x80 != 0
	if first != last {
		return first
	}
	var centre int // of what is filled, relative to the middle, in half eighths
	for k := range 8 {
		if mask>>k&1 != 0 {
			centre += 2*k - 7
		}
	}
	return centre <= 0
}
