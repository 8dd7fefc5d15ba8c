package tui

import (
	"fmt"
	"runtime/debug"

	tea "github.com/charmbracelet/bubbletea"
)

// PanicError is what Run answers when the display panicked, in Update, in View
// or in a command. Stack is where.
type PanicError struct {
	Value any
	Trace []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%v: panic: %v", ErrPanic, e.Value) }

// Unwrap makes it an ErrPanic.
func (e *PanicError) Unwrap() error { return ErrPanic }

// Stack is where it happened, as the runtime writes it.
func (e *PanicError) Stack() []byte { return e.Trace }

// guard keeps a panic of the model from Bubble Tea, which would write it on the
// terminal and forget it: the display ends as if it was left, and Run tells.
// After a panic the model is never asked again. All but the commands run on
// Bubble Tea's one goroutine.
type guard struct {
	*model
	broken *PanicError
}

type brokenMsg struct{ err *PanicError }

func (g *guard) Init() (cmd tea.Cmd) {
	defer g.catch(&cmd)
	return guarded(g.model.Init())
}

func (g *guard) Update(msg tea.Msg) (self tea.Model, cmd tea.Cmd) {
	self = g // also after a panic
	if m, ok := msg.(brokenMsg); ok && g.broken == nil {
		g.broken = m.err
	}
	if g.broken != nil {
		return g, tea.Quit
	}
	defer g.catch(&cmd)
	_, cmd = g.model.Update(msg)
	return self, guarded(cmd)
}

func (g *guard) View() (view string) {
	if g.broken != nil {
		return ""
	}
	// The next message finds the model broken, and a tick always comes.
	defer g.catch(nil)
	return g.model.View()
}

// catch turns a panic into the end of the display.
func (g *guard) catch(cmd *tea.Cmd) {
	if v := recover(); v != nil {
		g.broken = &PanicError{v, debug.Stack()}
		if cmd != nil {
			*cmd = tea.Quit
		}
	}
}

// run is p.Run, with the terminal put right after a panic of Bubble Tea's own
// loop. What it runs on goroutines of its own, its renderer and its reader of
// keys, nobody can catch: that is for whoever watches the process.
func (g *guard) run(p *tea.Program) (err error) {
	defer func() {
		if v := recover(); v != nil {
			g.broken = &PanicError{v, debug.Stack()}
			err = g.broken
			_ = p.ReleaseTerminal()
		}
	}()
	_, err = p.Run()
	return err
}

// guarded is a command that tells its panic as a message.
func guarded(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = brokenMsg{&PanicError{v, debug.Stack()}}
			}
		}()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = guarded(batch[i])
			}
		}
		return msg
	}
}
