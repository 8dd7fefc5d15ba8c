package tui

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/muesli/termenv"
)

// summaryBar is how many cells the longest bar of a summary has.
const summaryBar = 20

// Summary writes what remains of a session on the normal screen: how long it
// was, and for each label talk time, share of all talk, and number of turns;
// then what was lost, if anything was. Of o only ASCII, NoColor and Theme
// matter; there are no escape sequences when w is not a terminal.
func Summary(w io.Writer, s State, o Options) error {
	t := themeFor(o, w)
	ascii := o.ASCII || t.plain
	if f, ok := w.(term.File); !ok || !term.IsTerminal(f.Fd()) {
		t = newTheme(termenv.Ascii, true, true)
	}
	return summarize(w, s, t, glyphsFor(ascii, t.plain))
}

func summarize(w io.Writer, s State, t *theme, g *glyphs) error {
	b := bufio.NewWriter(w)
	paint := func(text string, st style) string {
		var sb strings.Builder
		t.change(&sb, style{}, st)
		sb.WriteString(text)
		t.change(&sb, st, style{})
		return sb.String()
	}
	dim := style{role: roleDim}

	ls := s.Timeline.Lanes
	total, longest, turns := 0.0, 0.0, 0
	name, talkW, turnsW := 0, 0, 0
	for _, l := range ls {
		n := len(l.Turns)
		if l.Open {
			n++
		}
		v := talk(l, s)
		total, longest, turns = total+v, max(longest, v), turns+n
		name = max(name, min(textWidth(Clean(l.Speaker)), 30))
		talkW = max(talkW, len(talkTime(v)))
		turnsW = max(turnsW, len(count(int64(n), "turn")))
	}
	head := []string{clock(s.Heard), count(int64(len(ls)), "speaker"), count(int64(turns), "turn")}
	fmt.Fprintf(b, "%s  %s\n", paint("hubbub", style{role: roleBrand, attr: bold}), strings.Join(head, "  "))

	for i, l := range ls {
		v, n := talk(l, s), len(l.Turns)
		if l.Open {
			n++
		}
		share, part := 0.0, 0.0
		if total > 0 {
			share, part = v/total, v/longest
		}
		st := style{role: laneRole(i)}
		label := fit(Clean(l.Speaker), 30, 3, g.ellipsis)
		fmt.Fprintf(b, "  %s%s  %*s  %s  %s  %s\n",
			paint(label, st), strings.Repeat(" ", max(name-textWidth(label), 0)),
			talkW, talkTime(v), paint(fmt.Sprintf("%3.0f%%", 100*share), dim),
			paint(fmt.Sprintf("%*s", turnsW, count(int64(n), "turn")), dim),
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
