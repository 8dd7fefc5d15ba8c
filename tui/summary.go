package tui

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/muesli/termenv"
)

// summaryBar is how many cells the longest bar of a summary has.
const summaryBar = 20

// Summary writes what remains of a session on the normal screen: how long it
// was, and for each label talk time, share of all talk, and number of turns;
// then what was lost, if anything was. Of o only ASCII, NoColor, Theme and
// Annotations matter; there are no escape sequences when w is not a terminal.
func Summary(w io.Writer, s State, o Options) error {
	t := themeFor(o, w)
	ascii := o.ASCII || t.plain
	if f, ok := w.(term.File); !ok || !term.IsTerminal(f.Fd()) {
		t = newTheme(termenv.Ascii, true, true)
	}
	return summarize(w, annotated(s, o.Annotations), t, glyphsFor(ascii, t.plain))
}

func summarize(w io.Writer, s *board, t *theme, g *glyphs) error {
	b := bufio.NewWriter(w)
	paint := func(text string, st style) string {
		var sb strings.Builder
		t.change(&sb, style{}, st)
		sb.WriteString(text)
		t.change(&sb, st, style{})
		return sb.String()
	}
	dim := style{role: roleDim}

	longest, turns := 0.0, 0
	name, talkW, turnsW := 0, 0, 0
	for _, p := range s.people {
		longest, turns = max(longest, p.talk), turns+p.turns
		name = max(name, min(textWidth(p.name), 30))
		talkW = max(talkW, len(talkTime(p.talk)))
		turnsW = max(turnsW, len(count(int64(p.turns), "turn")))
	}
	head := []string{clock(s.Heard), count(int64(len(s.people)), "speaker"), count(int64(turns), "turn")}
	fmt.Fprintf(b, "%s  %s\n", paint("hubbub", style{role: roleBrand, attr: bold}), strings.Join(head, "  "))

	for _, p := range s.people {
		part := 0.0
		if longest > 0 {
			part = p.talk / longest
		}
		share := fmt.Sprintf("%3.0f%%", 100*p.share)
		if p.muted {
			share = "   -"
		}
		st := style{role: p.role}
		label := fit(p.name, 30, 3, g.ellipsis)
		pad := strings.Repeat(" ", max(name-textWidth(label), 0))
		if !sureWidth(label) && !t.plain {
			pad = ansi.CursorHorizontalAbsolute(2 + name + 1)
		}
		fmt.Fprintf(b, "  %s%s  %*s  %s  %s  %s\n",
			paint(label, st), pad,
			talkW, talkTime(p.talk), paint(share, dim),
			paint(fmt.Sprintf("%*s", turnsW, count(int64(p.turns), "turn")), dim),
			paint(bar(part*summaryBar, g), st))
	}
	if s.Dropped > 0 {
		fmt.Fprintln(b, paint(fmt.Sprintf("  %s dropped: %.1f s of audio never reached the server", count(s.Dropped, "chunk"), 0.1*float64(s.Dropped)), style{role: roleBad}))
	}
	if s.Overflows > 0 {
		fmt.Fprintln(b, paint(fmt.Sprintf("  the device lost audio %s", times(s.Overflows)), style{role: roleWarn}))
	}
	return outputError(b.Flush())
}

// bar is a thin bar so many cells long, in halves of a cell, never empty.
func bar(cells float64, g *glyphs) string {
	halves := max(int(2*cells+0.5), 1)
	s := strings.Repeat(g.thin, halves/2)
	if halves%2 == 1 {
		s += g.halfThin
	}
	return s
}
