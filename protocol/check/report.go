package check

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
	"hubbub/protocol/trace"
)

// Report is the result of a check. Its JSON form is a contract.
type Report struct {
	OK      bool    `json:"ok"` // no stage failed or was skipped
	Server  string  `json:"server"`
	Proxy   string  `json:"proxy"`
	Version string  `json:"version"`
	Started string  `json:"started"`
	Stages  []Stage `json:"stages"`
}

// report makes the report, without secrets and cleaned for a terminal.
func (c *checker) report(started time.Time, results []Stage) Report {
	r := Report{OK: true, Server: c.secrets.Text(c.Server), Proxy: c.proxy, Version: c.Version, Started: started.UTC().Format(time.RFC3339)}
	clean := func(text string) string { return protocol.Clean(c.secrets.Text(text), 600) }
	// The next steps are our own words, and a short key may be one of them.
	var longKey trace.Redactor
	if len(c.Key) >= 12 {
		longKey.Add(c.Key)
	}
	for _, s := range results {
		s.Seen, s.Cause = clean(s.Seen), clean(s.Cause)
		s.Next = protocol.Clean(longKey.Text(s.Next), 600)
		for k, v := range s.Details {
			if text, ok := v.(string); ok {
				s.Details[k] = clean(text)
			}
		}
		r.OK = r.OK && s.State != Failed && s.State != Skipped
		r.Stages = append(r.Stages, s)
	}
	return r
}

// First is the first stage with a state; nil if none has it.
func (r Report) First(state State) *Stage {
	for i := range r.Stages {
		if r.Stages[i].State == state {
			return &r.Stages[i]
		}
	}
	return nil
}

// JSON writes the report as JSON.
func (r Report) JSON(w io.Writer) error { return protocol.WriteJSON(w, r) }

// Ticket writes the report for a support ticket: the table, the environment, and
// all numbers.
func (r Report) Ticket(w io.Writer) error {
	fmt.Fprintf(w, "hubbub check, %s\nhubbub %s, %s, %s/%s\n\n", r.Started, r.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := r.Table(w, Style{}); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nThe same as JSON:")
	return r.JSON(w)
}

// Style is the form of a table. The zero value has lines of any length and no
// colours.
type Style struct {
	Width   int // of the terminal, in cells; 0 = not known
	Colours bool
}

// Columns of the table, in cells.
const (
	causeColumn = 9  // where cause and next step begin
	seenColumn  = 38 // where the observations begin
	minWidth    = 20 // narrowest column in which text is wrapped
)

// stateColours are the SGR codes of the states.
var stateColours = map[State]string{OK: "32", Notice: "33", Failed: "1;31", Skipped: "2"}

// Table writes a line for each stage, with cause and next step below it.
func (r Report) Table(w io.Writer, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Checking %s\n", r.Server)
	if r.Proxy != "" {
		fmt.Fprintf(&b, "through the proxy %s\n", r.Proxy)
	}
	b.WriteString("\n")
	for _, s := range r.Stages {
		took := ""
		if s.State != Skipped {
			took = fmt.Sprintf("%.0f ms", s.Millis)
		}
		colour := stateColours[s.State]
		rest := strings.TrimRight(fmt.Sprintf(" %-17s %9s  ", s.Title, took)+style.Wrap(seenColumn, s.Seen), " ")
		if s.State == Skipped {
			rest = style.paint(colour, rest)
		}
		b.WriteString(style.paint(colour, fmt.Sprintf("%-8s", s.State)) + rest + "\n")
		for _, more := range [][2]string{{"cause:", s.Cause}, {"next: ", s.Next}} {
			if more[1] != "" {
				fmt.Fprintf(&b, "%s%s %s\n", strings.Repeat(" ", causeColumn), style.paint(colour, more[0]), style.Wrap(causeColumn+7, more[1]))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Style) paint(code, text string) string {
	if !s.Colours || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

// Wrap wraps text that begins at a column, and indents its lines to there.
func (s Style) Wrap(column int, text string) string {
	if s.Width-column < minWidth {
		return text
	}
	lines := strings.Split(ansi.Wrap(text, s.Width-column-1, ""), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", column))
}
