package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hubbub/protocol/testkit"
	"hubbub/tui/canvas"
)

// TestTerminalIsNotAsked runs a command without a screen: it asks the terminal for nothing,
// and so takes nothing of what was typed ahead.
func TestTerminalIsNotAsked(t *testing.T) {
	t.Parallel()
	if text := onTerminal(t, "TERM=xterm-256color", "version"); !strings.HasPrefix(text, "hubbub ") || strings.Contains(text, "\x1b") {
		t.Errorf("the terminal received %q", text)
	}
}

// TestDiarizeOnTerminal: the line of the progress is deleted before the turns are printed.
func TestDiarizeOnTerminal(t *testing.T) {
	t.Parallel()
	text := onTerminal(t, "TERM=screen", "diarize", demoFile(t))
	if before, _, found := strings.Cut(text, "00:00:"); !found || !strings.HasSuffix(before, "\r\x1b[K") {
		t.Errorf("the terminal received %q", text)
	}
}

// TestScreenAsksTheTerminal: the screen takes the colours for the background that the terminal
// answers with, and waits for no answer: what is typed before is not lost.
func TestScreenAsksTheTerminal(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{false, true} {
		terminal, cmd := startOnTerminal(t, "TERM=xterm-256color", "--input", demoFile(t))
		var out testkit.Buffer
		done := make(chan error, 1)
		go func() {
			_, _ = io.Copy(&out, terminal)
			done <- cmd.Wait()
		}()
		awaitOutput := func(text string) {
			testkit.Eventually(t, fmt.Sprintf("%q", text), func() bool { return strings.Contains(out.String(), text) })
		}
		awaitOutput("\x1b[")
		if answers {
			awaitOutput(canvas.BackgroundQuery)
			_, _ = terminal.WriteString("\x1b]11;rgb:ffff/ffff/ffff\x1b\\")
			awaitOutput("\x1b[0;1;38;5;23mhubbub")
		}
		_, _ = terminal.WriteString("q")
		testkit.Eventually(t, "q ends the program", func() bool { return len(done) > 0 })
		testkit.NoError(t, <-done)
	}
}

// TestReplayIntoAFileEnds: a replay whose output nobody at the terminal sees does not wait for commands.
func TestReplayIntoAFileEnds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "monday")
	start(t, "live", "--input", demoFile(t), "--pace", "fast", "--record", dir).ends(exitOK)
	_, side := openTerminal(t)
	defer side.Close()
	cmd := exec.Command(testProgram(t), "replay", dir, "--accessible", "--speed", "1000")
	cmd.Env, cmd.Stdin = append(os.Environ(), programEnv()...), side
	ends := time.AfterFunc(testkit.Timeout, func() { _ = cmd.Process.Kill() })
	defer ends.Stop()
	testkit.NoError(t, cmd.Run())
}

// onTerminal is all that the program writes on a terminal that answers nothing.
func onTerminal(t *testing.T, env string, args ...string) string {
	t.Helper()
	terminal, cmd := startOnTerminal(t, env, args...)
	out, _ := io.ReadAll(terminal) // ends with EIO when no process has the terminal
	testkit.NoError(t, cmd.Wait())
	return string(out)
}

// startOnTerminal starts the program as the leader of the session of a terminal.
func startOnTerminal(t *testing.T, env string, args ...string) (*os.File, *exec.Cmd) {
	t.Helper()
	skipShort(t)
	terminal, side := openTerminal(t)
	defer side.Close()
	cmd := exec.Command(testProgram(t), args...)
	cmd.Env = append(os.Environ(), programEnv(env, "CI=")...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Start(t, cmd)
	return terminal, cmd
}

// openTerminal opens a terminal; side is the one that programs have.
func openTerminal(t *testing.T) (terminal, side *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudoterminals here: ", err)
	}
	t.Cleanup(func() { terminal.Close() })
	number := testkit.Must(unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN))(t)
	testkit.NoError(t, unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0))
	side = testkit.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	return terminal, side
}

// TestLinesAboveTheProgress: what is printed has lines of its own, whenever the progress is shown,
// and what comes from elsewhere begins none.
func TestLinesAboveTheProgress(t *testing.T) {
	t.Parallel()
	terminal, side := openTerminal(t)
	read := make(chan string)
	go func() {
		out, _ := io.ReadAll(terminal) // ends with EIO
		read <- string(out)
	}()
	a := &App{Stderr: side}
	ctx, stop := context.WithCancel(t.Context())
	var showing sync.WaitGroup
	showing.Go(func() {
		for ctx.Err() == nil {
			a.progress("50 %")
		}
	})
	for range 1000 {
		a.notice("%s\nRepair it.", "broken\nhubbub: \x1b[2J")
		fmt.Fprintln(aboveProgress{a}, "line")
	}
	stop()
	showing.Wait()
	a.progress("")
	testkit.NoError(t, side.Close())
	text := strings.NewReplacer("\x1b[?7l50 %\x1b[?7h\r\x1b[K", "", "\r\n", "\n").Replace(<-read)
	if want := strings.Repeat("hubbub: broken hubbub: \nRepair it.\nline\n", 1000); text != want {
		t.Errorf("the terminal received %.500q", text)
	}
}

// TestSuspendWithoutShell: where no shell can continue the program, ctrl+z does not make it wait for that.
func TestSuspendWithoutShell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ display, key, answer, next, then, quit string }{
		{"--accessible", "bookmark\r", "Bookmark at", "name\r", "Who?", "quit\rquit\r"},
		{"--ascii", "?", "set a bookmark", "?w", "everything", "q"},
	} {
		t.Run(c.display, func(t *testing.T) {
			t.Parallel()
			terminal, cmd := startOnTerminal(t, "TERM=screen", "live", "--input", talkFile(t, 0), c.display)
			defer cmd.Process.Kill()
			var out testkit.Buffer
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(&out, terminal)
			}()
			testkit.Eventually(t, "the display", func() bool { return strings.Contains(out.String(), "SPEAKER_00") })
			for _, step := range [][2]string{{c.key, c.answer}, {"\x1a" + c.next, c.then}} {
				_, _ = terminal.WriteString(step[0])
				testkit.Eventually(t, step[1], func() bool { return strings.Contains(out.String(), step[1]) })
			}
			_, _ = terminal.WriteString(c.quit)
			<-read
			testkit.NoError(t, cmd.Wait())
		})
	}
}
