package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Terminal is a tmux of its own.
type Terminal struct {
	t      *testing.T
	socket string
}

// OpenTerminal runs a command of the shell in a terminal of w by h cells. Without tmux
// the test is skipped, or fails if HUBBUB_REQUIRE_TMUX is set.
func OpenTerminal(t *testing.T, w, h int, dir, command string) *Terminal {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a terminal")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("HUBBUB_REQUIRE_TMUX") != "" {
			t.Fatal("tmux is not installed; make test installs it")
		}
		t.Skip("tmux is not installed; make test installs it")
	}
	x := &Terminal{t, filepath.Join(t.TempDir(), "tmux")}
	x.Tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), "-c", dir, "sh", "-c", command)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", x.Screen())
		}
		_ = exec.Command("tmux", "-S", x.socket, "kill-server").Run()
	})
	return x
}

// Tmux runs a command of tmux and returns its output.
func (x *Terminal) Tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Resize sets the size of the terminal, in cells.
func (x *Terminal) Resize(w, h int) {
	x.t.Helper()
	x.Tmux("resize-window", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h))
}

// Keys presses keys, by their tmux names.
func (x *Terminal) Keys(keys ...string) {
	x.t.Helper()
	x.Tmux(append([]string{"send-keys"}, keys...)...)
}

// Types enters a text.
func (x *Terminal) Types(text string) {
	x.t.Helper()
	x.Keys("-l", text)
}

// Screen is the text on the screen; args are for tmux's capture-pane.
func (x *Terminal) Screen(args ...string) string {
	x.t.Helper()
	return x.Tmux(append([]string{"capture-pane", "-p"}, args...)...)
}

// Shows waits until all patterns match the screen, in which ^ and $ are the ends of lines.
func (x *Terminal) Shows(patterns ...string) (screen string) {
	x.t.Helper()
	Eventually(x.t, fmt.Sprintf("a screen with %q", patterns), func() bool {
		screen = x.Screen()
		return !slices.ContainsFunc(patterns, func(p string) bool { return !regexp.MustCompile("(?m)" + p).MatchString(screen) })
	})
	return screen
}

// Modes are the alternate screen, the cursor and the mouse: "0 1 0" as a shell needs them.
func (x *Terminal) Modes() string {
	x.t.Helper()
	return strings.TrimSpace(x.Tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"))
}
