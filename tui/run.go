package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	tea "github.com/charmbracelet/bubbletea"
)

// ErrInterrupted is what Run answers when the user left with ctrl+c; after q
// it answers nil.
var ErrInterrupted = errors.New("interrupted")

// ErrPanic is in what Run answers when the display broke: a defect of hubbub.
// The terminal is as it was, and the session can go on without a display.
var ErrPanic = errors.New("the display broke off")

// Run shows the session until the user leaves or ctx ends, and leaves the
// terminal as it was. It stays when the session is finished. It answers nil
// after q, ErrInterrupted after ctrl+c, the cause of ctx when that ended, a
// PanicError when the display broke, and an error when there is no terminal.
// It installs no signal handlers: whoever catches signals ends ctx.
func Run(ctx context.Context, o Options) error {
	out := o.Output
	if out == nil {
		out = os.Stdout
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel() // ends the model's commands

	m, p := newProgram(inner, o, out)
	err := m.run(p)
	switch {
	case m.broken != nil:
		return m.broken
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("cannot use the terminal: %w", err)
	case m.interrupted:
		return ErrInterrupted
	case m.left:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

func newProgram(ctx context.Context, o Options, out io.Writer) (*guard, *tea.Program) {
	t := themeFor(o, out)
	m := &guard{model: newModel(ctx, o, t, glyphsFor(o.ASCII || t.plain, t.plain))}
	opts := []tea.ProgramOption{tea.WithAltScreen(), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithoutCatchPanics()}
	if o.Mouse {
		opts = append(opts, tea.WithMouseCellMotion())
	}
	if o.Input != nil {
		opts = append(opts, tea.WithInput(o.Input))
	}
	return m, tea.NewProgram(m, opts...)
}
