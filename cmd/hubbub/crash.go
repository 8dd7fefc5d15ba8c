package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/term"
)

// A program that draws on the whole screen leaves the terminal in a bad way
// when it ends without being asked: a panic in any goroutine, also one of a
// library, a fatal error of the runtime, SIGKILL. No defer runs then. So a
// second process, the same program in another role, waits for its end behind a
// pipe (the way that runtime/debug.SetCrashOutput is made for), puts the
// terminal right, and keeps what the runtime said as a report.

// watcherEnv gives a process the role of the watcher.
const watcherEnv = "HUBBUB_WATCHER"

const (
	goodbye     = "bye\n"         // what the pipe carries before an end in order
	watcherTime = 5 * time.Second // bounds the start of a watcher
	maxReport   = 4 << 20         // bytes
)

// resetScreen leaves the alternate screen, shows the cursor, and turns off
// mouse reports, bracketed paste and colours.
const resetScreen = "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[m\r"

// watchScreen starts a watcher for the terminal behind screen, and answers how
// to end it in order. Without a watcher everything works but that.
func watchScreen(screen *os.File) (stop func()) {
	stop, err := startWatcher(screen)
	if err != nil {
		return func() {}
	}
	return stop
}

func startWatcher(screen *os.File) (func(), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	crash, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer crash.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), watcherEnv+"=1")
	cmd.Stdin, cmd.Stderr = crash, screen
	ready, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	end := func() {
		_ = ours.Close()
		_ = cmd.Wait()
	}
	// The watcher must have seen the terminal before the screen changes it.
	seen := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(ready, make([]byte, 1))
		seen <- err
	}()
	select {
	case err = <-seen:
	case <-time.After(watcherTime):
		err = errors.New("the watcher does not start")
		_ = cmd.Process.Kill()
	}
	if err == nil {
		err = debug.SetCrashOutput(ours, debug.CrashOptions{})
	}
	if err != nil {
		end()
		return nil, err
	}
	debug.SetTraceback("all")
	return func() {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_, _ = io.WriteString(ours, goodbye)
		end()
	}, nil
}

// watch is the watcher's whole life: standard input is the pipe, standard
// error the terminal.
func watch() int {
	ignoreSignals()
	fd := int(os.Stderr.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return exitFailed
	}
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		return exitFailed
	}
	said, _ := io.ReadAll(io.LimitReader(os.Stdin, maxReport))
	if bytes.HasSuffix(said, []byte(goodbye)) {
		return exitOK
	}
	fmt.Fprint(os.Stderr, resetScreen)
	_ = term.Restore(fd, before)
	if len(said) == 0 {
		return exitOK // killed, or left at once: there is nothing to report
	}
	cause, _, _ := bytes.Cut(said, []byte("\n"))
	fmt.Fprintf(os.Stderr, "hubbub: ended by a defect of its own: %s\n", cause)
	path, err := writeReport(said)
	if err != nil {
		fmt.Fprintf(os.Stderr, "The report could not be written: %v\n", err)
		return exitFailed
	}
	fmt.Fprintf(os.Stderr, "The report is %s; please send it in. What was recorded is readable.\n", path)
	return exitFailed
}

// writeReport keeps what the runtime said. Command line and environment stay
// out of it: they may hold a key.
func writeReport(trace []byte) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "hubbub")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	now := time.Now()
	f, err := os.CreateTemp(dir, "crash-"+now.Format("20060102-150405")+"-*.txt")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, "hubbub %s (%s), %s, %s/%s\n%s\n\n%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, now.Format(time.RFC3339), trace)
	return f.Name(), errors.Join(err, f.Close())
}
