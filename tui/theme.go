package tui

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// role is what a cell means; the theme says which colour that is.
type role uint8

const (
	rolePlain role = iota // the terminal's own colour
	roleBrand             // the product's name, the present
	roleDim               // what may be read second
	roleFaint             // what is only scenery: rules, grids
	roleGood              // as it should be
	roleWarn              // worth a look
	roleBad               // something failed or was lost
	roleLane0             // the first speaker; the others follow
	lanes     = 8
	roles     = roleLane0 + lanes
)

// laneRole is the colour of the i-th label.
func laneRole(i int) role { return roleLane0 + role(i%lanes) }

// background colours against which the palette is chosen: the darkest and the
// lightest that common dark themes have, and the same of light ones.
var (
	darkBackgrounds  = []string{"#000000", "#1e1e1e", "#282c34"}
	lightBackgrounds = []string{"#ffffff", "#fafafa", "#fdf6e3"}
)

// palette has the colours of all roles. Those of text reach a contrast of
// 4.5:1 on each background above, and the lanes' can be told apart with any of
// the three kinds of colour blindness; a test computes both.
var palette = [roles]lipgloss.AdaptiveColor{
	roleBrand:     {Dark: "#7fd1c7", Light: "#00665e"},
	roleDim:       {Dark: "#a0a6ad", Light: "#5c6269"},
	roleFaint:     {Dark: "#4a4f57", Light: "#c3c6ca"},
	roleGood:      {Dark: "#7fd1a0", Light: "#1a6b3a"},
	roleWarn:      {Dark: "#f0c050", Light: "#7d5200"},
	roleBad:       {Dark: "#ff8a80", Light: "#b3261e"},
	roleLane0:     {Dark: "#43cfff", Light: "#2168cf"},
	roleLane0 + 1: {Dark: "#f7be05", Light: "#bd3f0a"},
	roleLane0 + 2: {Dark: "#04b774", Light: "#005a5b"},
	roleLane0 + 3: {Dark: "#bd81c4", Light: "#9a3a97"},
	roleLane0 + 4: {Dark: "#e4ef5b", Light: "#5a704e"},
	roleLane0 + 5: {Dark: "#8b89ff", Light: "#4f2597"},
	roleLane0 + 6: {Dark: "#ef7a1d", Light: "#9d0e05"},
	roleLane0 + 7: {Dark: "#cacca3", Light: "#1e3543"},
}

// theme turns styles into escape sequences.
type theme struct {
	colour [roles]string // SGR parameters of each role's colour; "" = none
	plain  bool          // no escape sequences at all
}

// newTheme chooses the colours for a terminal with the given abilities.
func newTheme(p termenv.Profile, dark, plain bool) *theme {
	t := &theme{plain: plain}
	for r, c := range palette {
		hex := c.Light
		if dark {
			hex = c.Dark
		}
		if hex == "" || plain || p == termenv.Ascii {
			continue
		}
		if col := p.Color(hex); col != nil {
			t.colour[r] = col.Sequence(false)
		}
	}
	return t
}

// themeFor asks the environment and the terminal behind w.
func themeFor(o Options, w io.Writer) *theme {
	r := lipgloss.NewRenderer(w)
	profile := r.ColorProfile()
	if o.NoColor || os.Getenv("NO_COLOR") != "" {
		profile = termenv.Ascii
	}
	dark := o.Theme == ThemeDark
	if o.Theme == ThemeAuto {
		// The default renderer has asked its terminal before the screen took
		// it over; asking again now would swallow keys.
		dark = lipgloss.HasDarkBackground()
	}
	return newTheme(profile, dark, os.Getenv("TERM") == "dumb")
}

// change writes what leads from one style to another.
func (t *theme) change(b *strings.Builder, from, to style) {
	if t.plain {
		return
	}
	fc, tc := t.colour[from.role], t.colour[to.role]
	if fc == tc && from.attr == to.attr {
		return
	}
	if tc == "" && to.attr == 0 {
		b.WriteString("\x1b[m")
		return
	}
	// What goes off is put off one by one: that is shorter than to put off
	// everything and the colour on again.
	b.WriteString("\x1b[")
	sep := ""
	put := func(code string) {
		b.WriteString(sep + code)
		sep = ";"
	}
	on, off := to.attr&^from.attr, from.attr&^to.attr
	if off&bold != 0 {
		put("22")
	}
	if off&reverse != 0 {
		put("27")
	}
	if on&bold != 0 {
		put("1")
	}
	if on&reverse != 0 {
		put("7")
	}
	if tc != fc {
		if tc == "" {
			tc = "39"
		}
		put(tc)
	}
	b.WriteByte('m')
}
