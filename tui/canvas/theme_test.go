package canvas

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muesli/termenv"
)

// The backgrounds that the palette is chosen for: the darkest and the lightest
// of common dark themes, and the same of light ones.
var (
	darkBackgrounds  = []string{"#000000", "#1e1e1e", "#282c34"}
	lightBackgrounds = []string{"#ffffff", "#fafafa", "#fdf6e3"}
)

type rgb [3]float64 // linear light, 0..1

func linear(t testing.TB, hex string) rgb {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 32)
	if err != nil || len(hex) != 7 {
		t.Fatalf("%q is no colour", hex)
	}
	var c rgb
	for i := range c {
		v := float64(n>>(16-8*i)&0xff) / 255
		if v <= 0.04045 {
			c[i] = v / 12.92
		} else {
			c[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return c
}

// contrast is the contrast ratio of WCAG 2.1.
func contrast(a, b rgb) float64 {
	l := func(c rgb) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }
	x, y := l(a), l(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestTextReachesContrast(t *testing.T) {
	checkContrast(t, usual, 4.5, 1.3)
	checkContrast(t, highContrast, 7, 4.5)
	checkContrast(t, colourBlind, 4.5, 1.3)
}

// checkContrast checks a palette: of text, and of rules and grids.
func checkContrast(t *testing.T, palette int, text, rules float64) {
	t.Helper()
	for r := Brand; r < roles; r++ {
		want := text
		if r == Faint {
			want = rules
		}
		for i, colour := range colours[r][palette] {
			for _, bg := range [][]string{darkBackgrounds, lightBackgrounds}[i] {
				if got := contrast(linear(t, colour), linear(t, bg)); got < want {
					t.Errorf("role %d: %s on %s has %.2f:1, want %.1f:1", r, colour, bg, got, want)
				}
			}
		}
	}
}

// Colour blindness as Machado, Oliveira and Fernandes (2009) model it, at
// full severity, in linear light.
var sights = map[string][3]rgb{
	"full":   {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protan": {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deutan": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritan": {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func seen(c rgb, m [3]rgb) rgb {
	var out rgb
	for i := range out {
		out[i] = min(max(m[i][0]*c[0]+m[i][1]*c[1]+m[i][2]*c[2], 0), 1)
	}
	return out
}

// oklab is Björn Ottosson's perceptual space (2020); distances in it are about
// as large as differences look.
func oklab(c rgb) rgb {
	l := math.Cbrt(0.4122214708*c[0] + 0.5363325363*c[1] + 0.0514459929*c[2])
	m := math.Cbrt(0.2119034982*c[0] + 0.6806995451*c[1] + 0.1073969566*c[2])
	s := math.Cbrt(0.0883024619*c[0] + 0.2817188376*c[1] + 0.6299787005*c[2])
	return rgb{
		0.2104542553*l + 0.793617785*m - 0.0040720468*s,
		1.9779984951*l - 2.428592205*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.808675766*s,
	}
}

// difference is how different two colours look to a kind of sight.
func difference(t *testing.T, a, b string, sight [3]rgb) float64 {
	t.Helper()
	x, y := oklab(seen(linear(t, a), sight)), oklab(seen(linear(t, b), sight))
	return math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2]))
}

// least is the least difference between any two of the styles, for any sight, on dark and
// on light backgrounds.
func least(t *testing.T, palette int, styles []Style) float64 {
	d := math.Inf(1)
	for _, m := range sights {
		for i, a := range styles {
			for _, b := range styles[:i] {
				for i := range colours[a][palette] {
					d = min(d, difference(t, colours[a][palette][i], colours[b][palette][i], m))
				}
			}
		}
	}
	return d
}

// A difference of 0.02 is just noticeable with the colours side by side; the speakers
// need three times as much, the first four, which are all that most sessions have, five
// times. With the palette for colour blindness all differ more than in the others: in
// lightness and along the axis that remains.
func TestColoursCanBeToldApart(t *testing.T) {
	var speaker []Style
	for i := range speakers {
		speaker = append(speaker, Speaker(i))
	}
	for _, c := range []struct {
		name                         string
		styles                       []Style
		usual, contrast, colourBlind float64
	}{
		{"speakers", speaker, 0.06, 0.06, 0.11}, {"first four speakers", speaker[:4], 0.10, 0.10, 0.18},
		{"good, warning, bad", []Style{Good, Warn, Bad}, 0, 0, 0.18},
	} {
		usual, contrast, colourBlind := least(t, usual, c.styles), least(t, highContrast, c.styles), least(t, colourBlind, c.styles)
		if usual < c.usual || contrast < c.contrast || colourBlind < c.colourBlind || colourBlind <= usual {
			t.Errorf("%s differ by %.3f, with high contrast by %.3f, for colour blindness by %.3f; want %+v", c.name, usual, contrast, colourBlind, c)
		}
	}
}

// Where a terminal has fewer colours, they are not those of the palettes.
func TestFewColoursCanBeToldApart(t *testing.T) {
	for palette := range palettes {
		for _, p := range []termenv.Profile{termenv.ANSI256, termenv.ANSI} {
			for _, dark := range []bool{true, false} {
				th := newTheme(palette, p, dark, false)
				var of []string
				for i := range speakers {
					of = append(of, th.sequences[Speaker(i)])
				}
				for _, group := range [][]string{of, {th.sequences[Good], th.sequences[Warn], th.sequences[Bad]}} {
					for i, c := range group {
						if slices.Contains(group[:i], c) {
							t.Errorf("palette %d, profile %v, dark %v: %q appears twice in %q", palette, p, dark, c, group)
						}
					}
				}
			}
		}
	}
}

// sgr is the state of a terminal after SGR sequences.
type sgr struct {
	foreground string
	attributes Style
	unknown    string
}

func (s *sgr) apply(params string) {
	ps := strings.Split(params, ";")
	for i := 0; i < len(ps); i++ {
		switch p := ps[i]; {
		case p == "0":
			*s = sgr{unknown: s.unknown}
		case p == "1":
			s.attributes |= bold
		case p == "7":
			s.attributes |= reverse
		case p == "38" && i+2 < len(ps) && ps[i+1] == "5":
			s.foreground, i = strings.Join(ps[i:i+3], ";"), i+2
		case p == "38" && i+4 < len(ps) && ps[i+1] == "2":
			s.foreground, i = strings.Join(ps[i:i+5], ";"), i+4
		case len(p) == 2 && (p[0] == '3' || p[0] == '9'):
			s.foreground = p
		default:
			s.unknown = params
		}
	}
}

func TestStyleChangesArriveWhereTheyShould(t *testing.T) {
	for _, p := range []termenv.Profile{termenv.TrueColor, termenv.ANSI256, termenv.ANSI, termenv.Ascii} {
		th, palette := NewTheme(p, true, false), usual
		if p == termenv.ANSI {
			palette = basic
		}
		want := map[Style]sgr{}
		for r := range roles {
			foreground := ""
			if c := p.Color(colours[r][palette][0]); c != nil {
				foreground = c.Sequence(false)
			}
			for _, s := range []Style{r, r.Bold(), r.Reverse(), r.Bold().Reverse()} {
				want[s] = sgr{foreground: foreground, attributes: s &^ r}
			}
		}
		for from := range want {
			for to := range want {
				var b strings.Builder
				th.change(&b, Plain, from)
				th.change(&b, from, to)
				var term sgr
				for _, seq := range strings.Split(b.String(), "\x1b[")[1:] {
					term.apply(strings.TrimSuffix(seq, "m"))
				}
				if term != want[to] {
					t.Fatalf("profile %v, %v to %v: the terminal has %v, want %v, after %q", p, from, to, term, want[to], b.String())
				}
			}
		}
	}
}

// An answer of the terminal chooses the colours; other text does not.
func TestAnswer(t *testing.T) {
	defer answered.Store(nil)
	for _, c := range []struct{ text, dark string }{
		{"", "unknown"}, {"11;rgb:ffff", "unknown"}, {"10;rgb:ffff/ffff/ffff", "unknown"},
		{"11;rgb:fdfd/f6f6/e3e3", "false"}, {"11;rgb:1e1e/1e1e/1e1e", "true"}, {"11;rgb:FF/FF/FF", "false"}, {"11;rgba:0000/2b2b/3636/ffff", "true"},
	} {
		answered.Store(nil)
		is := Answer(c.text)
		got := "unknown"
		if d := answered.Load(); d != nil {
			got = strconv.FormatBool(*d)
		}
		if got != c.dark || is != (got != "unknown") {
			t.Errorf("%q: dark is %s, want %s; an answer: %v", c.text, got, c.dark, is)
		}
	}
}

// The environment can turn off colours, and escape sequences altogether.
func TestDetectTheme(t *testing.T) {
	t.Setenv("CLICOLOR_FORCE", "1") // what is not a terminal has no colours
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	drawn := New(1, 1, NewGlyphs(false))
	drawn.Set(0, 0, "x", Good.Bold())
	for _, c := range []struct {
		env  map[string]string
		b    Background
		want string
	}{
		{nil, DarkBackground, "\x1b[0;1;38;5;115mx\x1b[0m"},
		{nil, LightBackground, "\x1b[0;1;38;5;23mx\x1b[0m"},
		{map[string]string{"NO_COLOR": "1"}, DetectBackground, "\x1b[0;1mx\x1b[0m"},
		{map[string]string{"NO_COLOR": "", "TERM": "screen"}, DarkBackground, "\x1b[0;1;38;5;115mx\x1b[0m"},
		{map[string]string{"TERM": "dumb"}, DarkBackground, "x"},
	} {
		for k, v := range c.env {
			t.Setenv(k, v)
		}
		theme := DetectTheme(io.Discard, c.b)
		if got := drawn.Render(theme); got != c.want || theme.Plain() != (c.want == "x") {
			t.Errorf("%v: painted %q, want %q", c.env, got, c.want)
		}
	}
}
