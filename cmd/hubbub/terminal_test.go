package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kballard/go-shellquote"

	"hubbub/protocol/testkit"
)

// terminal is a terminal with the program in it.
type terminal struct {
	t      *testing.T
	folder string // of tmux
	dir    string // of the program
	exit   string // file for the program's exit code
}

// newTerminal is a terminal that is not open yet. Without tmux the test is skipped, or fails
// if HUBBUB_REQUIRE_TMUX is set.
func newTerminal(t *testing.T) *terminal {
	t.Helper()
	skipShort(t)
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("HUBBUB_REQUIRE_TMUX") != "" {
			t.Fatal("tmux is not installed; make test installs it")
		}
		t.Skip("tmux is not installed; make test installs it")
	}
	dir := t.TempDir()
	x := &terminal{t, dir, filepath.Join(dir, "work"), filepath.Join(dir, "exit")}
	testkit.NoError(t, os.Mkdir(x.dir, 0o700))
	return x
}

// open runs a command of the shell in the terminal, of w by h cells.
func (x *terminal) open(w, h int, command string) {
	x.t.Helper()
	server := x.tmux("-f", "/dev/null", "-D") // no daemon
	testkit.Start(x.t, server)
	// With a socket on which no server listens yet, new-session would start a daemon of its own.
	testkit.Eventually(x.t, "tmux", func() bool { return x.tmux("show-options", "-s").Run() == nil })
	x.Tmux("new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), "-c", x.dir, "sh", "-c", command)
	x.t.Cleanup(func() {
		if x.t.Failed() {
			x.t.Logf("the screen:\n%s", x.Screen())
		}
		_ = server.Process.Kill()
		_ = server.Wait()
	})
}

// inTerminal runs the program in a terminal of w by h cells.
func inTerminal(t *testing.T, w, h int, args ...string) *terminal {
	t.Helper()
	return inTerminalWith(t, w, h, nil, args...)
}

// inTerminalWith is inTerminal with more environment variables.
func inTerminalWith(t *testing.T, w, h int, env []string, args ...string) *terminal {
	t.Helper()
	x := newTerminal(t)
	command := shellquote.Join(slices.Concat([]string{"env"}, programEnv(env...), []string{testProgram(t)}, args)...)
	const used = `printf '\033[?1049h\033[?1049l'` // as by a program with a full screen, before
	x.open(w, h, fmt.Sprintf("%s; trap : INT; %s; echo $? >'%s'; cat", used, command, x.exit))
	return x
}

// exitCode waits for the program's end.
func (x *terminal) exitCode() string {
	x.t.Helper()
	var code []byte
	testkit.Eventually(x.t, "the end of the program", func() bool {
		code, _ = os.ReadFile(x.exit)
		return len(code) > 0
	})
	return strings.TrimSpace(string(code))
}

// ends waits for the program's end and checks its exit code.
func (x *terminal) ends(code int) {
	x.t.Helper()
	if got := x.exitCode(); got != strconv.Itoa(code) {
		x.t.Errorf("the program exits with %s, want %d", got, code)
	}
}

// sane checks that the terminal is as a shell needs it: what is typed is echoed
// and arrives line by line.
func (x *terminal) sane() {
	x.t.Helper()
	testkit.Eventually(x.t, "the normal screen and a cursor", func() bool { return x.Modes() == "0 1 0" })
	x.exitCode()
	try := 0
	testkit.Eventually(x.t, "typed text", func() bool {
		try++
		text := fmt.Sprint("typed", try)
		x.Keys(text, "Enter")
		time.Sleep(50 * time.Millisecond)
		// The terminal echoes the line, and cat, which runs now, prints it again.
		return strings.Count(x.Screen(), text+"\n") >= 2
	})
}

// tmux is a command of tmux. The path of its socket is relative, because it may not be long.
func (x *terminal) tmux(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u", "-S", "tmux"}, args...)...)
	cmd.Dir = x.folder
	return cmd
}

// Tmux runs a command of tmux and returns its output.
func (x *terminal) Tmux(args ...string) string {
	x.t.Helper()
	out, err := x.tmux(args...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Resize sets the size of the terminal, in cells.
func (x *terminal) Resize(w, h int) {
	x.t.Helper()
	x.Tmux("resize-window", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h))
}

// Keys presses keys, by their tmux names.
func (x *terminal) Keys(keys ...string) {
	x.t.Helper()
	x.Tmux(append([]string{"send-keys"}, keys...)...)
}

// Types enters a text.
func (x *terminal) Types(text string) {
	x.t.Helper()
	x.Keys("-l", text)
}

// Screen is the text on the screen; args are for tmux's capture-pane.
func (x *terminal) Screen(args ...string) string {
	x.t.Helper()
	return x.Tmux(append([]string{"capture-pane", "-p"}, args...)...)
}

// Shows waits until all patterns match the screen, in which ^ and $ are the ends of lines.
func (x *terminal) Shows(patterns ...string) (screen string) {
	x.t.Helper()
	testkit.Eventually(x.t, fmt.Sprintf("a screen with %q", patterns), func() bool {
		screen = x.Screen()
		return !slices.ContainsFunc(patterns, func(p string) bool { return !regexp.MustCompile("(?m)" + p).MatchString(screen) })
	})
	return screen
}

// Modes are the alternate screen, the cursor and the mouse: "0 1 0" as a shell needs them.
func (x *terminal) Modes() string {
	x.t.Helper()
	return strings.TrimSpace(x.Tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"))
}
