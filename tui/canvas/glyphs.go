package canvas

import "math/bits"

// Subcells is the number of steps that an edge has within one cell.
const Subcells = 8

// Glyphs are the characters that the screen draws with, each one cell wide in
// every terminal.
type Glyphs struct {
	ASCII bool // nothing beyond ASCII
	// Block[n] fills n eighths of a cell from the left.
	Block [Subcells + 1]string

	PendingOpen, Pending   string // not decided yet, with and without an open turn
	Rule, Tick, Grid       string
	Thin, HalfThin         string // a bar thinner than a row
	Speaking, Live, Idle   string
	Recognised             string // before a name that is that of a voiceprint
	Failed, Done           string
	Dot, Ellipsis          string
	MeterLeft, MeterRight  string
	Up, Down, Left, Right  string
	Rise                   [Subcells + 1]string // Rise[n] fills n eighths from below
	UpperHalf, LowerHalf   string
	Overlap, Gap           string // on the time axis: several speakers, unknown speakers
	GapFill                string // in the lanes: unknown speakers
	Bookmark, BookmarkLine string // on the time axis, and through the lanes
	MapLeft, MapRight      string // around the window on the minimap
	Selected               string
	Vertical               string // a peak of the meter, the cursor
}

var unicodeGlyphs = Glyphs{
	Block:       [9]string{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"},
	PendingOpen: "▒", Pending: "░",
	Rule: "─", Tick: "┬", Grid: "┊", Thin: "━", HalfThin: "╸",
	Speaking: "●", Live: "●", Idle: "○", Recognised: "≈", Failed: "×", Done: "■",
	Dot: "·", Ellipsis: "…",
	MeterLeft: "▕", MeterRight: "▏",
	Up: "↑", Down: "↓", Left: "←", Right: "→",
	Rise:      [9]string{"▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	UpperHalf: "▀", LowerHalf: "▄",
	Overlap: "━", Gap: "╳", GapFill: "╱", Bookmark: "◆", BookmarkLine: "┆",
	MapLeft: "┣", MapRight: "┫", Selected: "▌", Vertical: "│",
}

var asciiGlyphs = Glyphs{
	ASCII:       true,
	Block:       [9]string{" ", "-", "-", "-", "-", "#", "#", "#", "#"},
	PendingOpen: ":", Pending: ".",
	Rule: "-", Tick: "+", Grid: " ", Thin: "=", HalfThin: "-",
	Speaking: "*", Live: "*", Idle: "o", Recognised: "=", Failed: "x", Done: "#",
	Dot: "|", Ellipsis: "~",
	MeterLeft: "[", MeterRight: "]",
	Up: "^", Down: "v", Left: "<", Right: ">",
	Rise:      [9]string{" ", ".", ".", ":", ":", "=", "=", "#", "#"},
	UpperHalf: "#", LowerHalf: "#",
	Overlap: "=", Gap: "x", GapFill: "/", Bookmark: "@", BookmarkLine: " ",
	MapLeft: "[", MapRight: "]", Selected: ">", Vertical: "|",
}

// NewGlyphs returns the glyphs for a terminal: with ascii nothing beyond ASCII.
func NewGlyphs(ascii bool) *Glyphs {
	if ascii {
		return &asciiGlyphs
	}
	return &unicodeGlyphs
}

// Partial returns the glyph for a cell of which the eighths in mask are filled,
// bit 0 the leftmost, and whether its colours are swapped. In ASCII they never are: a
// terminal without escape sequences gets nothing else.
//
// One glyph has one edge. A cell with more of them keeps the filled amount.
func (g *Glyphs) Partial(mask uint8) (glyph string, swapped bool) {
	n := bits.OnesCount8(mask)
	switch right := mask&0x80 != 0 && mask&1 == 0; {
	case n == 0:
		return "", false
	case right && !g.ASCII:
		return g.Block[Subcells-n], true
	}
	return g.Block[n], false
}
