package canvas

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"

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

// palette has the colours of all roles. Those of text reach a contrast of
// 4.5:1 on the darkest and the lightest background of common dark and light themes,
// and the speakers' can be told apart with any of the three kinds of colour
// blindness; a test computes both.
var palette = [roles]lipgloss.AdaptiveColor{
	Brand:        {Dark: "#7fd1c7", Light: "#00665e"},
	Dim:          {Dark: "#a0a6ad", Light: "#5c6269"},
	Faint:        {Dark: "#4a4f57", Light: "#c3c6ca"},
	Good:         {Dark: "#7fd1a0", Light: "#1a6b3a"},
	Warn:         {Dark: "#f0c050", Light: "#7d5200"},
	Bad:          {Dark: "#ff8a80", Light: "#b3261e"},
	speaker0:     {Dark: "#43cfff", Light: "#2168cf"},
	speaker0 + 1: {Dark: "#f7be05", Light: "#bd3f0a"},
	speaker0 + 2: {Dark: "#04b774", Light: "#005a5b"},
	speaker0 + 3: {Dark: "#bd81c4", Light: "#9a3a97"},
	speaker0 + 4: {Dark: "#e4ef5b", Light: "#5a704e"},
	speaker0 + 5: {Dark: "#8b89ff", Light: "#4f2597"},
	speaker0 + 6: {Dark: "#ef7a1d", Light: "#9d0e05"},
	speaker0 + 7: {Dark: "#cacca3", Light: "#102038"},
}

// contrastPalette is the palette of high contrast: 7:1 for text, 4.5:1 for rules.
var contrastPalette = [roles]lipgloss.AdaptiveColor{
	Brand:        {Dark: "#a8f0e6", Light: "#004a44"},
	Dim:          {Dark: "#d4d8dc", Light: "#3a3f45"},
	Faint:        {Dark: "#a0a6ad", Light: "#5c6269"},
	Good:         {Dark: "#98f0bc", Light: "#0a4a24"},
	Warn:         {Dark: "#ffd460", Light: "#5a3a00"},
	Bad:          {Dark: "#ffb4ac", Light: "#8a0f0a"},
	speaker0:     {Dark: "#b2bf9e", Light: "#8d1529"},
	speaker0 + 1: {Dark: "#fdfdab", Light: "#0224fc"},
	speaker0 + 2: {Dark: "#e6b218", Light: "#00001d"},
	speaker0 + 3: {Dark: "#22eafe", Light: "#000589"},
	speaker0 + 4: {Dark: "#f5d85a", Light: "#540144"},
	speaker0 + 5: {Dark: "#4ec7ec", Light: "#4a4d6b"},
	speaker0 + 6: {Dark: "#c0fcec", Light: "#880ab2"},
	speaker0 + 7: {Dark: "#c2dea4", Light: "#1f1d01"},
}

// colourBlindPalette is chosen for any kind of colour blindness: with each of them the
// colours of speakers, and those of good, warning and bad, differ more than in palette.
// A search maximised the least of these differences among colours with a contrast of
// 4.5:1, good being blue, warnings yellow, and bad orange or dark red.
var colourBlindPalette = [roles]lipgloss.AdaptiveColor{
	Brand:        {Dark: "#50a7f3", Light: "#194c9c"},
	Dim:          palette[Dim],
	Faint:        palette[Faint],
	Good:         {Dark: "#50a7f3", Light: "#194c9c"},
	Warn:         {Dark: "#e6fb56", Light: "#906b29"},
	Bad:          {Dark: "#ea7016", Light: "#790000"},
	speaker0:     {Dark: "#f06a03", Light: "#684bff"},
	speaker0 + 1: {Dark: "#9289db", Light: "#040009"},
	speaker0 + 2: {Dark: "#feff15", Light: "#9a5325"},
	speaker0 + 3: {Dark: "#56e0c1", Light: "#460874"},
	speaker0 + 4: {Dark: "#f9bb0c", Light: "#771712"},
	speaker0 + 5: {Dark: "#b2b0ff", Light: "#d20f85"},
	speaker0 + 6: {Dark: "#c18287", Light: "#17063d"},
	speaker0 + 7: {Dark: "#b3fffe", Light: "#0f27ba"},
}

// basicPalette has the colours of terminals that have no more than 16: the nearest to
// those of palette are the same for several speakers.
var basicPalette = [roles]lipgloss.AdaptiveColor{
	Brand:        {Dark: "6", Light: "6"},
	Dim:          {Dark: "7", Light: "8"},
	Faint:        {Dark: "8", Light: "7"},
	Good:         {Dark: "10", Light: "2"},
	Warn:         {Dark: "11", Light: "3"},
	Bad:          {Dark: "9", Light: "1"},
	speaker0:     {Dark: "14", Light: "4"},
	speaker0 + 1: {Dark: "11", Light: "1"},
	speaker0 + 2: {Dark: "10", Light: "2"},
	speaker0 + 3: {Dark: "13", Light: "5"},
	speaker0 + 4: {Dark: "15", Light: "6"},
	speaker0 + 5: {Dark: "12", Light: "12"},
	speaker0 + 6: {Dark: "9", Light: "3"},
	speaker0 + 7: {Dark: "3", Light: "0"},
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
func NewTheme(p termenv.Profile, dark, plain bool) *Theme {
	return newTheme(&palette, p, dark, plain)
}

func newTheme(colours *[roles]lipgloss.AdaptiveColor, p termenv.Profile, dark, plain bool) *Theme {
	t := &Theme{sequences: map[Style]string{}, plain: plain}
	if p == termenv.ANSI {
		colours = &basicPalette
	}
	for r, c := range colours {
		hex, code := c.Light, ""
		if dark {
			hex = c.Dark
		}
		if colour := p.Color(hex); colour != nil && p != termenv.Ascii {
			code = ";" + colour.Sequence(false)
		}
		for attributes, codes := range map[Style]string{0: "", bold: ";1", reverse: ";7", bold | reverse: ";1;7"} {
			t.sequences[Style(r)|attributes] = "\x1b[0" + codes + code + "m"
		}
	}
	return t
}

// HasDarkBackground asks the terminal on standard output, the first time that it is called.
// The answer comes on standard input: what is typed until then is lost.
var HasDarkBackground = sync.OnceValue(func() bool { return lipgloss.NewRenderer(os.Stdout).HasDarkBackground() })

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
	dark := b == DarkBackground
	colours := &palette
	switch b {
	case HighContrast:
		colours = &contrastPalette
	case ColourBlind:
		colours = &colourBlindPalette
	}
	if b != DarkBackground && b != LightBackground {
		dark = HasDarkBackground()
	}
	return newTheme(colours, profile, dark, os.Getenv("TERM") == "dumb")
}

// Plain reports whether the terminal gets no escape sequences at all.
func (t *Theme) Plain() bool { return t.plain }

// change writes the sequence that leads from one style to another.
func (t *Theme) change(b *strings.Builder, from, to Style) {
	if sequence := t.sequences[to]; !t.plain && sequence != t.sequences[from] {
		b.WriteString(sequence)
	}
}
