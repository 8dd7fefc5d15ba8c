package tui

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"golang.org/x/term"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/plain"
)

// The summary, on the normal screen at the end:
//
//	hubbub  1:15  2 speakers  31 turns
//	  Anna        0:41   62%  17 turns  ━━━━━━━━━━━━━━━━━━━━
//	  SPEAKER_01  0:25   38%  14 turns  ━━━━━━━━━━━━
//	  4 chunks dropped: 0.4 s of audio are missing

const (
	maxSummaryName = 30 // cells
	summaryBar     = 20 // cells of the longest bar
)

// Summary writes what remains of a session on the normal screen: its length, for
// each speaker talk time, share of all talk, and number of turns; then what was
// lost, if anything was. Of o only ASCII, Background and Annotations matter.
// There are no escape sequences when w is not a terminal.
func Summary(w io.Writer, s display.State, o Options) error {
	t := canvas.DetectTheme(w, o.Background)
	ascii := o.ASCII || t.Plain() || asciiLocale()
	width := math.MaxInt
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		t = canvas.NewTheme(termenv.Ascii, true, true)
	} else if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		width = columns
	}
	return writeSummary(w, width, display.NewSession(s, o.Annotations), t, canvas.NewGlyphs(ascii, t.Plain()))
}

// writeSummary writes lines of at most width cells, from minWidth on.
func writeSummary(w io.Writer, width int, s *display.Session, t *canvas.Theme, g *canvas.Glyphs) error {
	b := bufio.NewWriter(w)
	longest, turns := 0.0, 0
	nameWidth, talkWidth, turnsWidth := 0, 0, 0
	longestName := min(maxSummaryName, max(width-30, 10)) // the other columns and a short bar take 30
	for _, p := range s.Speakers {
		longest, turns = max(longest, p.TalkTime), turns+p.TurnCount
		nameWidth = max(nameWidth, min(canvas.Width(p.Name), longestName))
		talkWidth = max(talkWidth, len(display.TalkText(p.TalkTime)))
		turnsWidth = max(turnsWidth, len(display.Count(p.TurnCount, "turn")))
	}
	bar := max(min(summaryBar, width-2-nameWidth-2-talkWidth-2-len("100%")-2-turnsWidth-2), 1)
	totals := []string{display.Clock(s.Position), display.Count(len(s.Speakers), "speaker"), display.Count(turns, "turn")}
	fmt.Fprintf(b, "%s  %s\n", t.Paint("hubbub", canvas.Brand.Bold()), strings.Join(totals, "  "))

	for _, p := range s.Speakers {
		part := 0.0
		if longest > 0 {
			part = p.TalkTime / longest
		}
		share := fmt.Sprintf("%3.0f%%", 100*p.Share)
		if p.Muted {
			share = "   -"
		}
		name := canvas.Fit(p.Name, longestName, 3, g.Ellipsis)
		pad := strings.Repeat(" ", max(nameWidth-canvas.Width(name), 0))
		if !canvas.FixedWidth(name) && !t.Plain() {
			pad = ansi.CursorHorizontalAbsolute(2 + nameWidth + 1)
		}
		fmt.Fprintf(b, "  %s%s  %*s  %s  %s  %s\n",
			t.Paint(name, p.Style), pad,
			talkWidth, display.TalkText(p.TalkTime), t.Paint(share, canvas.Dim),
			t.Paint(fmt.Sprintf("%*s", turnsWidth, display.Count(p.TurnCount, "turn")), canvas.Dim),
			t.Paint(display.ThinBar(part*float64(bar), g), p.Style))
	}
	if s.Dropped > 0 {
		fmt.Fprintln(b, t.Paint(fmt.Sprintf("  %s dropped: %.1f s of audio are missing", display.Count(s.Dropped, "chunk"), 0.1*float64(s.Dropped)), canvas.Bad))
	}
	if s.Overflows > 0 {
		fmt.Fprintln(b, t.Paint(fmt.Sprintf("  the device lost audio %s", display.Times(s.Overflows)), canvas.Warn))
	}
	return plain.OutputError(b.Flush())
}
