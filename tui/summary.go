package tui

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/muesli/termenv"
	"golang.org/x/term"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The summary, on the normal screen at the end:
//
//	hubbub  1:15  2 speakers  31 turns
//	  Anna        0:41   62%  17 turns  ━━━━━━━━━━━━━━━━━━━━
//	  SPEAKER_01  0:25   38%  14 turns  ━━━━━━━━━━━━

const (
	maxSummaryName = 30 // cells
	summaryBar     = 20 // cells of the longest bar
)

// Summary writes what remains of a session on the normal screen: its length, for
// each speaker talk time, share of all talk, and number of turns.
// Of o only ASCII, Background and Annotations matter.
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
	return writeSummary(w, width, display.NewSession(s, o.Annotations), t, canvas.NewGlyphs(ascii))
}

// writeSummary writes lines of at most width cells, from minWidth on.
func writeSummary(w io.Writer, width int, s *display.Session, t *canvas.Theme, g *canvas.Glyphs) error {
	longest, turns := 0.0, 0
	name, talk, count := 0, 0, 0                          // widths of the columns
	longestName := min(maxSummaryName, max(width-30, 10)) // the other columns and a short bar take 30
	for _, p := range s.Speakers {
		longest, turns = max(longest, p.TalkTime), turns+p.TurnCount
		name = max(name, min(canvas.Width(p.Name), longestName))
		talk = max(talk, len(display.TalkText(p.TalkTime)))
		count = max(count, len(display.Count(p.TurnCount, "turn")))
	}
	talkEnd := 2 + name + 2 + talk
	shareEnd := talkEnd + 2 + len("100%")
	countEnd := shareEnd + 2 + count
	bar := max(min(summaryBar, width-countEnd-2), 1)
	c := canvas.New(max(countEnd+2+bar, 80), 1+len(s.Speakers), g)
	c.Line(0, 0, c.Width, canvas.Line{
		canvas.NewSegment("hubbub", canvas.Brand.Bold(), 0), canvas.NewSegment(display.Clock(s.Position), canvas.Plain, 0),
		canvas.NewSegment(display.Count(len(s.Speakers), "speaker"), canvas.Plain, 0), canvas.NewSegment(display.Count(turns, "turn"), canvas.Plain, 0),
	}, 2)
	y := 1
	for _, p := range s.Speakers {
		part, share := 0.0, fmt.Sprintf("%.0f%%", 100*p.Share)
		if longest > 0 {
			part = p.TalkTime / longest
		}
		if p.Muted {
			share = "-"
		}
		c.Fitted(2, y, name, p.Name, 3, p.Style)
		c.TextRight(talkEnd, y, display.TalkText(p.TalkTime), canvas.Plain)
		c.TextRight(shareEnd, y, share, canvas.Dim)
		c.TextRight(countEnd, y, display.Count(p.TurnCount, "turn"), canvas.Dim)
		c.Text(countEnd+2, y, bar, display.ThinBar(part*float64(bar), g), p.Style)
		y++
	}
	_, err := io.WriteString(w, strings.TrimRight(c.Render(t), "\n")+"\n")
	return err
}
