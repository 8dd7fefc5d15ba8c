package canvas

import (
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Style is how a cell looks: a role, which the theme turns into a colour, and
// the attributes bold and reverse.
type Style uint16

// The roles, each of which is a style without attributes.
const (
	Plain    Style = iota // the terminal's own colour
	Brand                 // the product's name, the present
	Dim                   // secondary text
	Faint                 // rules and grids
	Good                  // as it should be
	Warn                  // needs attention
	Bad                   // failed or lost
	speaker0              // the first speaker; the others follow

	speakers = 8
	roles    = speaker0 + speakers

	bold    Style = 1 << 8
	reverse Style = 1 << 9
)

// Speaker is the style of the i-th speaker, counted from 0. The colours repeat
// after eight.
func Speaker(i int) Style { return speaker0 + Style(i%speakers) }

// Bold is the style in bold.
func (s Style) Bold() Style { return s | bold }

// Reverse is the style with text and background swapped.
func (s Style) Reverse() Style { return s | reverse }

// The palettes.
const (
	// usual: text reaches a contrast of 4.5:1 on the darkest and the lightest background of
	// common dark and light themes, and the speakers can be told apart with any of the three
	// kinds of colour blindness; a test computes both.
	usual = iota
	// highContrast: 7:1 for text, 4.5:1 for rules.
	highContrast
	// colourBlind: with any kind of colour blindness the colours of speakers, and those of
	// good, warning and bad, differ more than in usual. A search maximised the least of these
	// differences among colours with a contrast of 4.5:1, good being blue, warnings yellow,
	// and bad orange or dark red.
	colourBlind
	// basic is for terminals that have no more than 16 colours: the nearest to those of usual
	// are the same for several speakers.
	basic

	palettes
)

// colours are those of each role, by palette, on a dark and on a light background.
var colours = [roles][palettes][2]string{
	Brand:        {{"#7fd1c7", "#00665e"}, {"#a8f0e6", "#004a44"}, {"#50a7f3", "#194c9c"}, {"6", "6"}},
	Dim:          {{"#a0a6ad", "#5c6269"}, {"#d4d8dc", "#3a3f45"}, {"#a0a6ad", "#5c6269"}, {"7", "8"}},
	Faint:        {{"#4a4f57", "#c3c6ca"}, {"#a0a6ad", "#5c6269"}, {"#4a4f57", "#c3c6ca"}, {"8", "7"}},
	Good:         {{"#7fd1a0", "#1a6b3a"}, {"#98f0bc", "#0a4a24"}, {"#50a7f3", "#194c9c"}, {"10", "2"}},
	Warn:         {{"#f0c050", "#7d5200"}, {"#ffd460", "#5a3a00"}, {"#e6fb56", "#906b29"}, {"11", "3"}},
	Bad:          {{"#ff8a80", "#b3261e"}, {"#ffb4ac", "#8a0f0a"}, {"#ea7016", "#790000"}, {"9", "1"}},
	speaker0:     {{"#43cfff", "#2168cf"}, {"#b2bf9e", "#8d1529"}, {"#f06a03", "#684bff"}, {"14", "4"}},
	speaker0 + 1: {{"#f7be05", "#bd3f0a"}, {"#fdfdab", "#0224fc"}, {"#9289db", "#040009"}, {"11", "1"}},
	speaker0 + 2: {{"#04b774", "#005a5b"}, {"#e6b218", "#00001d"}, {"#feff15", "#9a5325"}, {"10", "2"}},
	speaker0 + 3: {{"#bd81c4", "#9a3a97"}, {"#22eafe", "#000589"}, {"#56e0c1", "#460874"}, {"13", "5"}},
	speaker0 + 4: {{"#e4ef5b", "#5a704e"}, {"#f5d85a", "#540144"}, {"#f9bb0c", "#771712"}, {"15", "6"}},
	speaker0 + 5: {{"#8b89ff", "#4f2597"}, {"#4ec7ec", "#4a4d6b"}, {"#b2b0ff", "#d20f85"}, {"12", "12"}},
	speaker0 + 6: {{"#ef7a1d", "#9d0e05"}, {"#c0fcec", "#880ab2"}, {"#c18287", "#17063d"}, {"9", "3"}},
	speaker0 + 7: {{"#cacca3", "#102038"}, {"#c2dea4", "#1f1d01"}, {"#b3fffe", "#0f27ba"}, {"3", "0"}},
}

// Background is the kind of background that colours are chosen for, as the setting has it. For the
// zero value the terminal is asked, as for DetectBackground.
type Background string

// The backgrounds. DetectBackground asks the terminal, and assumes a dark one
// when there is no answer.
const (
	DetectBackground Background = "auto"
	DarkBackground   Background = "dark"
	LightBackground  Background = "light"
	// HighContrast is DetectBackground with the palette of high contrast,
	// ColourBlind with that for colour blindness.
	HighContrast Background = "contrast"
	ColourBlind  Background = "colour-blind"
)

// Theme turns styles into escape sequences.
type Theme struct {
	sequences map[Style]string // of each style, from any other
	plain     bool             // no escape sequences at all
}

// NewTheme chooses the colours for a terminal's colour profile. A plain theme
// has no escape sequences at all.
func NewTheme(p termenv.Profile, dark, plain bool) *Theme { return newTheme(usual, p, dark, plain) }

func newTheme(palette int, p termenv.Profile, dark, plain bool) *Theme {
	t := &Theme{sequences: map[Style]string{}, plain: plain}
	if p == termenv.ANSI {
		palette = basic
	}
	for r := range colours {
		name, code := colours[r][palette][1], ""
		if dark {
			name = colours[r][palette][0]
		}
		if colour := p.Color(name); colour != nil && p != termenv.Ascii {
			code = ";" + colour.Sequence(false)
		}
		for attributes, codes := range map[Style]string{0: "", bold: ";1", reverse: ";7", bold | reverse: ";1;7"} {
			t.sequences[Style(r)|attributes] = "\x1b[0" + codes + code + "m"
		}
	}
	return t
}

// BackgroundQuery asks a terminal for its background. The answer comes on its input: the
// sequence of 11;rgb:ffff/ffff/ffff for white.
const BackgroundQuery = "\x1b]11;?\x1b\\"

// answered is whether the terminal has answered that its background is dark; nil = it has not answered.
var answered atomic.Pointer[bool]

// AskBackground asks the terminal on standard output and awaits the answer, for 5 s at most.
// What is typed until then is lost.
func AskBackground() {
	d := lipgloss.NewRenderer(os.Stdout).HasDarkBackground()
	answered.Store(&d)
}

var backgroundAnswer = regexp.MustCompile(`^11;rgba?:([0-9a-fA-F]{2})[0-9a-fA-F]*/([0-9a-fA-F]{2})[0-9a-fA-F]*/([0-9a-fA-F]{2})`)

// Answer takes an answer to BackgroundQuery for the themes of DetectTheme, and reports whether
// text is one.
func Answer(text string) bool {
	m := backgroundAnswer.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	lightest, darkest := uint64(0), uint64(255)
	for _, hex := range m[1:] {
		v, _ := strconv.ParseUint(hex, 16, 8)
		lightest, darkest = max(lightest, v), min(darkest, v)
	}
	d := lightest+darkest < 255
	answered.Store(&d)
	return true
}

// hasDarkBackground is what the terminal has answered, otherwise what the environment says.
func hasDarkBackground() bool {
	if d := answered.Load(); d != nil {
		return *d
	}
	return termenv.NewOutput(io.Discard).HasDarkBackground()
}

// AsksBackground reports whether the colours of b depend on the answer of the terminal, and it
// can be asked: what runs in screen or tmux can be shown by several terminals.
func AsksBackground(b Background) bool {
	return b != DarkBackground && b != LightBackground && runtime.GOOS != "windows" &&
		!slices.ContainsFunc([]string{"screen", "tmux", "dumb"}, func(name string) bool { return strings.HasPrefix(os.Getenv("TERM"), name) })
}

// DetectTheme chooses the colours for the terminal behind w: what it can show,
// what NO_COLOR and TERM=dumb ask for, and its background.
func DetectTheme(w io.Writer, b Background) *Theme {
	profile := lipgloss.NewRenderer(w).ColorProfile()
	// termenv knows only some terminals by their name, not screen. With TMUX, Detect
	// would run tmux.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TMUX=") })
	profile = min(profile, termenv.Profile(colorprofile.TrueColor-colorprofile.Detect(w, env)))
	if os.Getenv("NO_COLOR") != "" {
		profile = termenv.Ascii
	}
	dark := b == DarkBackground || b != LightBackground && hasDarkBackground()
	palette := map[Background]int{HighContrast: highContrast, ColourBlind: colourBlind}[b] // else usual
	return newTheme(palette, profile, dark, os.Getenv("TERM") == "dumb")
}

// Plain reports whether the terminal gets no escape sequences at all.
func (t *Theme) Plain() bool { return t.plain }

// change writes the sequence that leads from one style to another.
func (t *Theme) change(b *strings.Builder, from, to Style) {
	if sequence := t.sequences[to]; !t.plain && sequence != t.sequences[from] {
		b.WriteString(sequence)
	}
}
