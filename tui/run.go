package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol/recovered"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/noquery"
)

func init() { noquery.End() }

// Options are what Run needs. Snapshot and Output are required. A screen without a store
// of annotations has one of its own; while that has changes that are not saved, quitting
// asks for confirmation.
type Options struct {
	display.Controls
	// Messages wake the screen; nil = only the tick does.
	Messages <-chan Msg
	// ASCII omits every glyph beyond ASCII; so does the locale C or POSIX. In the
	// environment, NO_COLOR omits colours and TERM=dumb escape sequences.
	ASCII bool
	// Background is what the colours are chosen for.
	Background canvas.Background
	// Output is the terminal, Input what is typed; nil = standard input.
	Output io.Writer
	Input  io.Reader
	// SaveWire writes lines into a file and returns its name. It runs on its own
	// goroutine. nil = the wire view cannot save.
	SaveWire func(ndjson []byte) (string, error)
	// Voices is the folder of the voiceprints that speakers are compared with;
	// "" = none are used.
	Voices string
	// Keys are the keys of the commands.
	Keys Keymap
	// NoSuspend leaves out ctrl+z: no shell could continue the program.
	NoSuspend bool
	// Continued tells that the program goes on after it was stopped, by ctrl+z or from
	// elsewhere, after which the terminal is as the shell had it; nil = it is never.
	Continued <-chan os.Signal
	// Mouse starts with the mouse on; a key turns it off, to select text.
	Mouse bool
}

// Msg wakes the screen before its next tick: the State has news. The mailbox is bounded; a
// sender that finds it full may discard a Msg without a text, because the next tick sees the same.
type Msg struct {
	Text    string // shown for a while; "" = nothing. It may come from the network: control characters are removed
	Problem bool   // the text is an error
}

// ErrInterrupted is what Run returns when the user quit with ctrl+c; after q it
// returns nil.
var ErrInterrupted = errors.New("interrupted")

// Run shows the session until the user quits or ctx ends, and restores the
// terminal. It does not end when the session is finished. It returns nil after
// q, ErrInterrupted after ctrl+c, the cause of ctx when that ended, a
// *recovered.Error when the display panicked, and an error when there is no terminal.
// It installs no signal handlers: whoever handles signals ends ctx.
func Run(ctx context.Context, o Options) error {
	m, p := newProgram(o)
	err := m.run(ctx, p)
	switch {
	case m.panicked != nil:
		return m.panicked
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("cannot use the terminal: %w", err)
	case m.interrupted:
		return ErrInterrupted
	case m.quitting:
		return nil
	}
	return context.Cause(ctx)
}

func newProgram(o Options) (*model, *tea.Program) {
	t := canvas.DetectTheme(o.Output, o.Background)
	m := newModel(o, t, canvas.NewGlyphs(o.ASCII || t.Plain() || asciiLocale()))
	output := o.Output
	if f, ok := output.(*os.File); ok && canvas.AsksBackground(o.Background) {
		output = &asking{File: f}
	}
	opts := []tea.ProgramOption{tea.WithAltScreen(), tea.WithOutput(output), tea.WithoutSignalHandler(), tea.WithoutCatchPanics()}
	if o.Mouse {
		opts = append(opts, tea.WithMouseCellMotion())
	}
	if o.Input != nil {
		opts = append(opts, tea.WithInput(o.Input))
	}
	return m, tea.NewProgram(m, opts...)
}

// asking is a terminal that is asked for its background with the first picture:
// Bubble Tea has turned off the echo by then, and reads the answer. Nobody waits for it.
type asking struct {
	*os.File
	once sync.Once
}

func (a *asking) Write(p []byte) (int, error) {
	a.once.Do(func() { _, _ = a.WriteString(canvas.BackgroundQuery) })
	return a.File.Write(p)
}

// asciiLocale reports whether the environment chooses a locale without characters
// beyond ASCII.
func asciiLocale() bool {
	locale := cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"))
	return locale == "C" || locale == "POSIX"
}

// forward passes on what comes from elsewhere, and quits when ctx ends.
func (m *model) forward(ctx context.Context, p *tea.Program) {
	for {
		select {
		case <-ctx.Done():
			p.Quit()
			return
		case msg := <-m.o.Messages:
			p.Send(msg)
		case <-m.o.Continued:
			p.Send(continuedMsg{})
		}
	}
}

// run is p.Run until ctx ends. It recovers panics of the model and of Bubble Tea's loop: Bubble Tea
// would print them on the terminal and drop them; this way the display ends as if the user had quit,
// the terminal is restored, and Run returns the panic. A command reports its panic as a message.
// Panics of the goroutines that Bubble Tea starts, its renderer and its key reader, cannot be
// recovered here: that needs another process.
func (m *model) run(ctx context.Context, p *tea.Program) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go m.forward(ctx, p)
	defer func() {
		if v := recover(); v != nil {
			m.panicked = recovered.New("the display crashed", v)
			_ = p.ReleaseTerminal()
		}
	}()
	_, err = p.Run()
	if err != nil && !errors.Is(err, tea.ErrProgramKilled) { // it did not begin, and restored nothing
		_ = p.ReleaseTerminal()
	}
	return err
}

// redraw is a command that takes the terminal as if another program had used it.
func redraw() tea.Cmd {
	return tea.Exec(otherProgram{}, func(error) tea.Msg { return tea.ResumeMsg{} })
}

// otherProgram is one that has ended.
type otherProgram struct{}

func (otherProgram) Run() error          { return nil }
func (otherProgram) SetStdin(io.Reader)  {}
func (otherProgram) SetStdout(io.Writer) {}
func (otherProgram) SetStderr(io.Writer) {}
