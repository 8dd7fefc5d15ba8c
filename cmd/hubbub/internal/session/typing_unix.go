//go:build unix

package session

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"hubbub/cmd/hubbub/internal/crash"
)

// lineEditor reads lines from a terminal by character. A line of output goes
// above the line that is being typed, which is drawn again below it: in the
// terminal's own line mode, output would end up in the middle of it.
type lineEditor struct {
	terminal *term.Terminal
	keys     io.Reader
	screen   *os.File
	fd       int // of the terminal
	before   *term.State
	stop     func() // of the crash monitor
}

// lineInput is standard input for cancelreader.
func lineInput(stdin *os.File) io.Reader { return stdin }

// editLines switches the terminal to reading by character, until close. nil = that
// is not possible.
func editLines(stdin *os.File, keys io.Reader, screen *os.File) *lineEditor {
	e := &lineEditor{keys: keys, screen: screen, fd: int(stdin.Fd()), stop: crash.StartMonitor(screen, crash.ResetLine)}
	var err error
	if e.before, err = term.MakeRaw(e.fd); err != nil {
		e.stop()
		return nil
	}
	e.terminal = term.NewTerminal(e, "")
	e.resize()
	return e
}

// resize tells the editor the width, at which a long line wraps.
func (e *lineEditor) resize() {
	if w, h, err := term.GetSize(int(e.screen.Fd())); err == nil && w > 0 && h > 0 {
		_ = e.terminal.SetSize(w, h)
	}
}

// The keys that the terminal itself handles in its line mode.
const (
	ctrlC = 0x03
	ctrlZ = 0x1a
)

// Read reads keys for the editor, and acts on those that mean signals.
func (e *lineEditor) Read(p []byte) (int, error) {
	for {
		n, err := e.keys.Read(p)
		e.resize()
		kept := p[:0]
		for _, b := range p[:n] {
			switch b {
			case ctrlC:
				_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
			case ctrlZ:
				if suspendable() {
					e.suspend()
				}
			default:
				kept = append(kept, b)
			}
		}
		if len(kept) > 0 || err != nil || n == 0 {
			return len(kept), err
		}
	}
}

// Write writes to the screen for the editor.
func (e *lineEditor) Write(p []byte) (int, error) { return e.screen.Write(p) }

// suspendable reports whether a shell can continue the program after ctrl+z. The process group
// of a session's leader, as a terminal, ssh or a container starts it, has none: SIGTSTP does not
// stop it, and the wait for its continuation would not end.
func suspendable() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}

// continued tells that the program goes on after it was stopped, until end.
func continued() (signals chan os.Signal, end func()) {
	signals = make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCONT)
	return signals, func() { signal.Stop(signals) }
}

// suspend gives the terminal back to the shell until the program is continued.
func (e *lineEditor) suspend() {
	signals, end := continued()
	defer end()
	_ = term.Restore(e.fd, e.before)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	<-signals
	_, _ = term.MakeRaw(e.fd)
	e.resize()
}

// close restores the terminal, after the last ReadLine.
func (e *lineEditor) close() {
	_ = term.Restore(e.fd, e.before)
	e.stop()
}
