package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// The columns of the table of a check.
const (
	causeColumn = 9  // where cause and next step begin
	seenColumn  = 38 // where what was seen begins
	// narrowest is the room for words below which wrapping them would be of
	// no use.
	narrowest = 20
)

// sheet is where a table is written: how wide it is, and whether it has
// colours. The zero value has lines of any length and none.
type sheet struct {
	width   int
	colours bool
}

// sheetOf is the terminal behind w, or a sheet for what is none.
func sheetOf(w any) sheet {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return sheet{}
	}
	s := sheet{colours: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		s.width = width
	}
	return s
}

// stateColours are the SGR codes of the states; the word says the same.
var stateColours = map[string]string{stateOK: "32", stateNotice: "33", stateFailed: "1;31", stateSkipped: "2"}

func (s sheet) paint(code, text string) string {
	if !s.colours || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

// hang wraps text at the sheet's width, with the lines after the first one
// below the column where it begins.
func (s sheet) hang(column int, text string) string {
	if s.width-column < narrowest {
		return text
	}
	lines := strings.Split(ansi.Wrap(text, s.width-column-1, ""), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", column))
}

// table is a line for each stage, with cause and next step below it.
func (r checkReport) table(w io.Writer, on sheet) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Checking %s\n", r.Server)
	if r.Proxy != "" {
		fmt.Fprintf(&b, "through the proxy %s\n", r.Proxy)
	}
	b.WriteString("\n")
	for _, s := range r.Stages {
		took := ""
		if s.State != stateSkipped {
			took = fmt.Sprintf("%.0f ms", s.Millis)
		}
		colour := stateColours[s.State]
		line := on.paint(colour, fmt.Sprintf("%-8s", s.State))
		rest := fmt.Sprintf(" %-17s %9s  ", s.Title, took) + on.hang(seenColumn, s.Seen)
		if rest = strings.TrimRight(rest, " "); s.State == stateSkipped {
			rest = on.paint(colour, rest)
		}
		b.WriteString(line + rest + "\n")
		for _, more := range [][2]string{{"cause:", s.Cause}, {"next: ", s.Next}} {
			if more[1] != "" {
				fmt.Fprintf(&b, "%s%s %s\n", strings.Repeat(" ", causeColumn), on.paint(colour, more[0]), on.hang(causeColumn+7, more[1]))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
