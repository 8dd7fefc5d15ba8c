package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"hubbub/tui"
)

// The exit codes that scripts may rely on.
const (
	exitOK          = 0   // the input ended and the service closed normally
	exitFailed      = 1   // something failed: one line says what, a second one what to do
	exitUsage       = 2   // wrong usage
	exitInterrupted = 130 // interrupted, after flushing
)

// App is one run of the program: its arguments and its three streams.
type App struct {
	Args   []string
	Stdin  *os.File
	Stdout io.Writer
	Stderr io.Writer

	interrupted atomic.Bool
}

// Main parses, runs and reports; it returns the exit code.
//
// The first interrupt ends the input: what was said is still decided, written
// and closed in order. The second one ends the program at once.
func (a *App) Main() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// A closed pipe behind standard output is an error to report, not a death.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-signals:
			a.interrupt(cancel)
		case <-done:
			return
		}
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()

	root := newRoot(a)
	root.SetArgs(a.Args)
	err := guarded(func() error { return root.ExecuteContext(ctx) })
	if err != nil && strings.HasPrefix(err.Error(), "unknown command") {
		err = oneLine(err)
	}
	return a.report(err)
}

// interrupt remembers that the user wanted out, and ends ctx.
func (a *App) interrupt(cancel context.CancelFunc) {
	a.interrupted.Store(true)
	cancel()
}

// report prints what went wrong in one line and what to do in the next.
func (a *App) report(err error) int {
	if errors.Is(err, tui.ErrOutputClosed) {
		return exitInterrupted // whoever read our output has seen enough
	}
	if err != nil && !(a.interrupted.Load() && errors.Is(err, context.Canceled)) {
		fmt.Fprintf(a.Stderr, "hubbub: %v\n", err)
		var h interface{ Hint() string }
		if errors.As(err, &h) && h.Hint() != "" {
			fmt.Fprintln(a.Stderr, h.Hint())
		}
		reportDefect(a.Stderr, err)
		var u *usageError
		if errors.As(err, &u) {
			return exitUsage
		}
		if !a.interrupted.Load() {
			return exitFailed
		}
	}
	if a.interrupted.Load() {
		return exitInterrupted
	}
	return exitOK
}

// notice prints a line that is worth knowing and no reason to stop.
func (a *App) notice(format string, args ...any) {
	fmt.Fprintf(a.Stderr, "hubbub: "+format+"\n", args...)
}
