package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
)

// The exit codes that scripts may rely on.
const (
	exitOK          = 0   // the input ended and the service closed normally
	exitFailed      = 1   // something failed: one line says what, a second one what to do
	exitUsage       = 2   // wrong usage
	exitInterrupted = 130 // interrupted, or the reader of standard output closed it
)

// App is one run of the program: its arguments and its three streams.
type App struct {
	Args   []string
	Stdin  *os.File
	Stdout io.Writer
	Stderr io.Writer

	interrupted atomic.Bool
	// waiting says that the command waits for what may never come, such as an answer, and
	// has nothing to finish: the first interrupt is handled as the second one.
	waiting atomic.Bool
	// second handles the second interrupt; nil ends the program.
	second atomic.Pointer[func() bool]
	// slow is the timer of App.connecting; nil before.
	slow *time.Timer
	// printing is held while something is printed on standard error beside the progress.
	printing    sync.Mutex
	progressing bool // the last line of the terminal is the progress
}

// Main runs the command of the arguments, reports its error and returns the exit
// code.
//
// The first interrupt ends the input: what was captured is still decided and
// written. The second one ends the program at once, unless the command handles it
// (onSecondInterrupt); while the command waits, the first one does. A terminal that closes
// interrupts once, although both the kernel and the shell report it.
func (a *App) Main() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// Writing to a closed pipe returns an error instead of ending the program.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)
	done := make(chan struct{})
	defer close(done)
	go a.handle(signals, done, cancel)

	root := newRoot(a)
	addCompletion(root)
	if len(a.Args) > 0 && a.Args[0] == cobra.ShellCompRequestCmd {
		walk(root, plainDescriptions)
	}
	root.SetArgs(a.Args)
	out := &checkedWriter{Writer: a.Stdout}
	root.SetOut(out)
	err := recovered.Guard(func() error { return root.ExecuteContext(ctx) })
	err = cmp.Or(err, out.err)
	if err != nil && !usage.Is(err) {
		err = cmp.Or(unknownCommand(root, err), err)
	}
	return a.report(err)
}

// endSignals are the signals that end the program.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup, for a program that outlives its terminal
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// checkedWriter keeps the first error of a writer: cobra ignores that of a help text.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(p []byte) (n int, err error) {
	n, err = w.Writer.Write(p)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// oneInterrupt is how close signals are that are one interrupt: timeout(1) sends one to the
// program and then one to its process group. When a terminal closes, the shell sends its
// SIGHUP later than the kernel.
const oneInterrupt = 100 * time.Millisecond

// handle handles the signals until done; the first one calls cancel.
func (a *App) handle(signals <-chan os.Signal, done <-chan struct{}, cancel func()) {
	var last time.Time
	for first := true; ; first = false {
		var s os.Signal
		select {
		case <-done:
			return
		case s = <-signals:
		}
		if time.Since(last) < oneInterrupt || !first && s == syscall.SIGHUP {
			continue
		}
		last = time.Now()
		if handle := a.second.Load(); first && !a.waiting.Load() {
			a.interrupted.Store(true)
			cancel()
		} else if handle == nil || !(*handle)() {
			os.Exit(exitInterrupted)
		}
	}
}

// onSecondInterrupt calls handle for every interrupt after the first one. When it
// returns false, the program ends at once.
func (a *App) onSecondInterrupt(handle func() bool) { a.second.Store(&handle) }

// report prints an error in one line and what to do in the next, and returns the
// exit code. Errors of every command end here.
func (a *App) report(err error) int {
	if a.stdoutClosed(err) {
		return exitInterrupted
	}
	if err != nil && !(a.interrupted.Load() && errors.Is(err, context.Canceled)) {
		a.notice("%v\n%s", err, whatToDo(err))
		crash.Report(a.Stderr, versionAndCommit(), err)
		if usage.Is(err) {
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

// whatToDo is the hint of an error, or one for what the system says. What the system lacks is
// the same whatever was done.
func whatToDo(err error) string {
	switch {
	case errno.Is(err, syscall.ENOSPC, syscall.EDQUOT):
		return "Free disk space, or write to another disk."
	case errno.Is(err, syscall.EMFILE, syscall.ENFILE):
		return "Close other programs, or raise the limit of open files (ulimit -n)."
	}
	if h := hint.Of(err); h != "" {
		return h
	}
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case errno.Is(err, syscall.ENAMETOOLONG):
		return "Choose a shorter name."
	case errors.Is(err, fs.ErrPermission):
		return "Check the permissions of the file and its folder, or choose another place."
	case errno.Is(err, syscall.EBUSY):
		return "Close the program that uses the file, or choose another place."
	case errors.Is(err, fs.ErrExist), errno.Is(err, syscall.EISDIR, syscall.ENOTDIR):
		return "Move what is there, or choose another name."
	case errors.As(err, &file), errors.As(err, &link):
		return "Check the name, and the disk that it is on."
	}
	return ""
}

// stdoutClosed reports whether err is that of a write to a pipe whose reader has
// closed it, as head does.
func (a *App) stdoutClosed(err error) bool {
	var failed *fs.PathError
	stdout, ok := a.Stdout.(*os.File)
	return ok && errors.As(err, &failed) && failed.Path == stdout.Name() && errno.Is(failed, syscall.EPIPE)
}
