package crash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"golang.org/x/term"
)

// A full-screen program that ends without running its deferred functions leaves
// the terminal unusable: after a panic in any goroutine, also one of a library,
// a fatal error of the runtime, or SIGKILL. So a second process of the same
// program, the crash monitor, waits for its end at a pipe, which gets the
// output of runtime/debug.SetCrashOutput, restores the terminal and writes a
// report.

// monitorEnv is set in the environment of the crash monitor, to what restores the terminal.
const monitorEnv = "HUBBUB_CRASH_MONITOR"

const (
	normalEnd    = "end\n"         // written to the pipe before a normal end
	startTimeout = 5 * time.Second // bounds the start of the monitor
	maxReport    = 4 << 20         // bytes
)

// What restores the terminal, beside its modes.
const (
	// ResetScreen switches to the normal screen, shows the cursor, and turns off mouse reports,
	// bracketed paste and colours.
	ResetScreen = "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[m\r"
	// ResetLine ends a line that is being typed. On the normal screen ResetScreen would move the
	// cursor to where an earlier program has left it.
	ResetLine = "\r\n"
)

// IsMonitor reports whether this process is a crash monitor: then main must call
// RunMonitor and nothing else.
func IsMonitor() bool { return os.Getenv(monitorEnv) != "" }

// StartMonitor starts a crash monitor for the terminal behind screen, which reset restores.
// stop ends it before a normal end of the program. If it cannot be started, the program
// runs without one.
func StartMonitor(screen *os.File, reset string) (stop func()) {
	none := func() {}
	self, err := os.Executable()
	if err != nil {
		return none
	}
	pipe, ours, err := os.Pipe()
	if err != nil {
		return none
	}
	defer pipe.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), monitorEnv+"="+reset)
	cmd.Stdin, cmd.Stderr = pipe, screen
	ready, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = ours.Close()
		return none
	}
	end := func() {
		_ = ours.Close()
		_ = cmd.Wait()
	}
	// The monitor reads the state of the terminal before the screen changes it.
	started := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(ready, make([]byte, 1))
		started <- err
	}()
	select {
	case err = <-started:
	case <-time.After(startTimeout):
		err = errors.New("the crash monitor does not start")
		_ = cmd.Process.Kill()
	}
	if err == nil {
		err = debug.SetCrashOutput(ours, debug.CrashOptions{})
	}
	if err != nil {
		end()
		return none
	}
	debug.SetTraceback("all")
	return func() {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_, _ = io.WriteString(ours, normalEnd)
		end()
	}
}

// RunMonitor is the crash monitor: standard input is the pipe, standard error
// the terminal. It returns the exit code. program is the program's version.
func RunMonitor(program string) int {
	ignoreSignals()
	fd := int(os.Stderr.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return 1
	}
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		return 1
	}
	trace, _ := io.ReadAll(io.LimitReader(os.Stdin, maxReport))
	if bytes.HasSuffix(trace, []byte(normalEnd)) {
		return 0
	}
	fmt.Fprint(os.Stderr, os.Getenv(monitorEnv))
	_ = term.Restore(fd, before)
	if len(trace) == 0 {
		return 0 // killed: there is nothing to report
	}
	cause, _, _ := bytes.Cut(trace, []byte("\n"))
	fmt.Fprintf(os.Stderr, "hubbub: internal error: %s\n", cause)
	report(os.Stderr, program, trace)
	return 1
}
