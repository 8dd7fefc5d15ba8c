package tui

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/tuitest"
)

// wideNames are names that terminals give different widths, or none.
var wideNames = []string{
	"👨\u200d👩\u200d👧 Ott", "Zoë", "नीलिमा क्षिप्रा", "می\u200cخواهم", "🏳\ufe0f\u200d🌈 Ru", "தமிழ்", "ශ්\u200dරී", "Z̸a̴l̷g̸o̵ 李雷",
}

// grid is what a terminal shows that takes clusters for as wide as measure
// says: the text of each cell, "" for what belongs to the cell before.
func grid(view string, w, h int, measure func(string) int) [][]string {
	g := make([][]string, h)
	for y := range g {
		g[y] = make([]string, w)
		for x := range g[y] {
			g[y][x] = old
		}
	}
	for y, line := range strings.Split(view, "\n") {
		x := 0
		for line != "" {
			if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
				end := strings.IndexFunc(rest, func(r rune) bool { return r >= 0x40 && r <= 0x7e })
				n, _ := strconv.Atoi(rest[:end])
				switch rest[end] {
				case 'X':
					for i := range n {
						g[y][x+i] = " "
					}
				case 'G':
					x = n - 1
				}
				line = rest[end+1:]
				continue
			}
			cluster, _ := ansi.FirstGraphemeCluster(line, ansi.GraphemeWidth)
			line = line[len(cluster):]
			n := measure(cluster)
			for i := range n {
				if x+i < w {
					g[y][x+i] = ""
				}
			}
			if x < w {
				g[y][x] = cluster
			}
			x += n
		}
		for ; x < w; x++ { // Bubble Tea erases the rest of the line
			g[y][x] = " "
		}
	}
	return g
}

// old is what a cell had before.
const old = "\x00"

// measures are the ways in which terminals count.
var measures = map[string]func(string) int{
	"by clusters": ansi.StringWidth,
	"by code":     ansi.StringWidthWc,
	"none joined": func(s string) (n int) {
		for _, r := range s {
			n += ansi.StringWidthWc(string(r))
		}
		return n
	},
}

// named is a session of eight people with these names.
func named(names []string) (display.State, *protocol.AnnotationsStore) {
	a := protocol.Annotations{}
	for i, name := range names[:min(8, len(names))] {
		a, _ = a.Rename(fmt.Sprintf("SPEAKER_%02d", i), name)
	}
	return tuitest.State(tuitest.Turns(8, 200, 7), 75.2, 1), protocol.NewAnnotationsStore(a)
}

// TestNamesMoveNothing compares screens on which only the names differ, at the
// same widths: in every terminal, what stands right of the names is in the same
// cells, and nothing of an older frame is left.
func TestNamesMoveNothing(t *testing.T) {
	var plainNames []string
	for _, name := range wideNames {
		plainNames = append(plainNames, strings.Repeat("n", canvas.Width(name)))
	}
	for _, size := range [][2]int{{40, 8}, {80, 24}, {120, 34}} {
		for _, keys := range [][]string{nil, {"s", "3"}, {"1", "r", "left", "left"}} {
			s, hard := named(wideNames)
			_, easy := named(plainNames)
			draw := func(store *protocol.AnnotationsStore) (string, layout) {
				m := testModel(s, size[0], size[1])
				m.annotations = store
				press(m, keys...)
				return m.View(), m.layout()
			}
			hardView, l := draw(hard)
			easyView, _ := draw(easy)
			for how, measure := range measures {
				got, want := grid(hardView, size[0], size[1], measure), grid(easyView, size[0], size[1], measure)
				for y := range got {
					for x, text := range got[y] {
						if text == old {
							t.Fatalf("%v, keys %v, widths %s: something old is left in row %d, column %d", size, keys, how, y, x)
						}
						lane := y >= l.lanesY && y < l.axisY
						if lane && x >= 3+l.name && text != want[y][x] {
							t.Fatalf("%v, keys %v, widths %s: row %d, column %d has %q, want %q", size, keys, how, y, x, text, want[y][x])
						}
					}
				}
			}
		}
	}
}

// TestGoldenNames pins names that are hard to draw on the screens that show
// them; ^ stands for escape.
func TestGoldenNames(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
	}{{"names", nil}, {"names-presenter", []string{"f"}}, {"names-typed", []string{"1", "r", "left", "left"}}} {
		s, store := named(wideNames)
		m := testModel(s, 80, 24)
		m.annotations, m.theme = store, canvas.NewTheme(termenv.Ascii, true, false)
		press(m, c.keys...)
		golden(t, "view-"+c.name+"-80x24", []byte(strings.ReplaceAll(m.View(), "\x1b", "^")+"\n"))
	}
	s, store := named(wideNames)
	var b strings.Builder
	testkit.NoError(t, writeSummary(&b, 80, display.NewSession(s, store), canvas.NewTheme(termenv.Ascii, true, false), canvas.NewGlyphs(false)))
	golden(t, "summary-names", []byte(strings.ReplaceAll(b.String(), "\x1b", "^")))
}

// TestSummaryOnANarrowTerminal: no line is wrapped.
func TestSummaryOnANarrowTerminal(t *testing.T) {
	s, store := named(append([]string{strings.Repeat("long ", 12)}, wideNames...))
	for _, width := range []int{minWidth, 60, 80} {
		var b strings.Builder
		testkit.NoError(t, writeSummary(&b, width, display.NewSession(s, store), canvas.NewTheme(termenv.Ascii, true, true), canvas.NewGlyphs(false)))
		for line := range strings.SplitSeq(b.String(), "\n") {
			if got := canvas.Width(line); got > width {
				t.Errorf("%d cells on a terminal of %d: %q", got, width, line)
			}
		}
	}
}
