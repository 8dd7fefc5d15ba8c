package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/session"
	"hubbub/protocol"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// progress says on a terminal what a command is doing, in place of what it said before; "" erases that.
func (a *App) progress(text string) {
	a.above(func() {
		if a.progressing = text != "" && session.IsTerminal(a.Stderr); a.progressing {
			// Without line wrap: a narrow terminal would show each text in lines of its own.
			fmt.Fprint(a.Stderr, "\x1b[?7l"+text+"\x1b[?7h")
		}
	})
}

// above prints whole lines, in place of the progress.
func (a *App) above(print func()) {
	a.printing.Lock()
	defer a.printing.Unlock()
	if a.progressing {
		fmt.Fprint(a.Stderr, "\r\x1b[K")
		a.progressing = false
	}
	print()
}

// aboveProgress is standard error for the lines of sessions.
type aboveProgress struct{ *App }

func (p aboveProgress) IsTerminal() bool { return session.IsTerminal(p.Stderr) }

func (p aboveProgress) Write(b []byte) (n int, err error) {
	p.above(func() { n, err = p.Stderr.Write(b) })
	return n, err
}

// notice prints lines on standard error. Names in the arguments may be hostile: they begin no line.
func (a *App) notice(format string, args ...any) {
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			args[i] = display.TerminalSafe(v)
		case error:
			args[i] = display.TerminalSafe(v.Error())
		}
	}
	text := fmt.Sprintf(format, args...)
	a.above(func() { fmt.Fprintln(a.Stderr, "hubbub: "+strings.TrimSuffix(text, "\n")) })
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
	fmt.Fprintf(a.Stderr, "%s. Overwrite? [y/N] ", display.TerminalSafe(what))
	answer, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return refused
}

// printReport prints a report as text or JSON, in place of the progress.
func (a *App) printReport(output choice, text, json func(io.Writer) error) error {
	a.progress("")
	if output.value == "json" {
		return json(a.Stdout)
	}
	return text(a.Stdout)
}

// printList prints a list: as indented JSON, or as a table with a heading and a row for each
// entry, with tabs between the cells.
func printList[T any](w io.Writer, format, heading string, list []T, row func(T) string) error {
	if format == "json" {
		return protocol.WriteJSON(w, append([]T{}, list...)) // no entries are [], not null
	}
	rows := []string{heading}
	for _, entry := range list {
		rows = append(rows, row(entry))
	}
	return writeTable(w, rows)
}

// writeTable writes rows of cells with tabs between them in columns. Unlike tabwriter it knows
// that some characters are two cells wide.
func writeTable(w io.Writer, rows []string) error {
	widths := map[int]int{} // by column
	for _, row := range rows {
		for i, cell := range strings.Split(row, "\t") {
			widths[i] = max(widths[i], canvas.Width(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		cells := strings.Split(row, "\t")
		last := len(cells) - 1
		for i, cell := range cells[:last] {
			b.WriteString(cell + strings.Repeat(" ", widths[i]+2-canvas.Width(cell)))
		}
		b.WriteString(cells[last] + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeReport writes the file of --report, which only its owner reads, or nothing; "" = none.
func writeReport(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	var report bytes.Buffer // takes what no error is returned for, too
	err := write(&report)
	if err == nil {
		err = atomicfile.Replace(path, 0o600, func(w io.Writer) error {
			_, err := w.Write(report.Bytes())
			return err
		})
		if errors.Is(err, fs.ErrPermission) || errno.Is(err, syscall.EBUSY, syscall.EROFS) {
			err = os.WriteFile(path, report.Bytes(), 0o600) // only the file may be writable, as one that a container mounts
		}
	}
	if err != nil {
		return hint.Add(fmt.Errorf("the report cannot be written: %w", err), "Give a file that can be written with --report FILE.")
	}
	return nil
}
