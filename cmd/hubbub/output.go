package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/session"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// clearLine deletes what a terminal shows of the progress.
func (a *App) clearLine() {
	if session.IsTerminal(a.Stderr) {
		fmt.Fprint(a.Stderr, "\r\x1b[K")
	}
}

// notice prints lines on standard error. Names in them may be hostile.
func (a *App) notice(format string, args ...any) {
	lines := strings.Split("hubbub: "+fmt.Sprintf(format, args...), "\n")
	for i, line := range lines {
		lines[i] = display.TerminalSafe(line)
	}
	fmt.Fprintln(a.Stderr, strings.Join(lines, "\n"))
}

// noEffect says which flags of the command line have no effect, and why.
func (a *App) noEffect(cmd *cobra.Command, why string, flags ...string) {
	for _, name := range flags {
		if cmd.Flags().Changed(name) {
			a.notice("--%s has no effect %s", name, why)
		}
	}
}

// noEffectAlone is noEffect for the flags that need --voices or --words.
func (a *App) noEffectAlone(cmd *cobra.Command, v voicesFlags, w wordsFlags) {
	if !v.voices {
		a.noEffect(cmd, "without --voices", "voices-threshold", "send-voices")
	}
	if w.words == "" {
		a.noEffect(cmd, "without --words", "words-model")
	}
}

// mayReplace asks about existing files: on a terminal the user, elsewhere the
// answer is no. place is the flag that names another place.
func (a *App) mayReplace(paths []string, place string) error {
	var existing []string
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil {
			existing = append(existing, p)
		}
	}
	if len(existing) == 0 {
		return nil
	}
	what := existing[0] + " exists"
	if len(existing) > 1 {
		what = fmt.Sprintf("%s and %d more exist", existing[0], len(existing)-1)
	}
	refused := hint.Add(fmt.Errorf("%s already; nothing was written", what), "Overwrite with --force, or choose another place with "+place+".")
	if !session.IsTerminal(a.Stdin) || !session.IsTerminal(a.Stderr) {
		return refused
	}
	a.waiting.Store(true)
	defer a.waiting.Store(false)
	fmt.Fprintf(a.Stderr, "%s. Overwrite? [y/N] ", what)
	answer, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return refused
}

// printReport prints a report as text or JSON.
func (a *App) printReport(output choice, text, json func(io.Writer) error) error {
	if output.value == "json" {
		return json(a.Stdout)
	}
	return text(a.Stdout)
}

// table is a table: lines of cells with tabs between them, which Flush writes. Unlike
// tabwriter it knows that some characters are two cells wide.
type table struct {
	bytes.Buffer
	out io.Writer
}

// table is a table on standard output; the heading is its first line.
func (a *App) table(heading string) *table {
	t := &table{out: a.Stdout}
	fmt.Fprintln(t, heading)
	return t
}

func (t *table) Flush() error {
	var rows [][]string
	widths := map[int]int{} // by column
	for line := range strings.Lines(t.String()) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i, cell := range row {
			widths[i] = max(widths[i], canvas.Width(cell))
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	for _, row := range rows {
		last := len(row) - 1
		for i, cell := range row[:last] {
			b.WriteString(cell + strings.Repeat(" ", widths[i]+2-canvas.Width(cell)))
		}
		b.WriteString(row[last] + "\n")
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

// printJSONList prints a list as indented JSON; no entries are [], not null.
func printJSONList[T any](w io.Writer, list []T) error {
	if list == nil {
		list = []T{}
	}
	return protocol.WriteJSON(w, list)
}

// writeReport writes the file of --report, which only its owner reads; "" = none.
func writeReport(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(write(file), file.Close())
	}
	if err != nil {
		return hint.Add(fmt.Errorf("the report cannot be written: %w", err), "Give a file that can be written with --report FILE.")
	}
	return nil
}
