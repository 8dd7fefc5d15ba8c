package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// terminal is tmux with the program in it.
type terminal struct {
	t      *testing.T
	socket string
	exit   string // file that gets the program's exit code
}

// inTerminal runs the program in a terminal of w by h cells.
func inTerminal(t *testing.T, w, h int, args ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("HUBBUB_REQUIRE_TMUX") != "" {
			t.Fatal("tmux is not installed; make test installs it")
		}
		t.Skip("tmux is not installed; make test installs it")
	}
	dir := t.TempDir()
	x := &terminal{t: t, socket: filepath.Join(dir, "tmux"), exit: filepath.Join(dir, "exit")}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	command := fmt.Sprintf("%s=1 HUBBUB_SERVER= HUBBUB_API_KEY= %s %s; echo $? >%s; cat", asHubbub, os.Args[0], strings.Join(quoted, " "), x.exit)
	x.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), "sh", "-c", command)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", x.tmux("capture-pane", "-p"))
		}
		_ = exec.Command("tmux", "-S", x.socket, "kill-server").Run()
	})
	return x
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// shows polls the screen until each pattern is on it.
func (x *terminal) shows(patterns ...string) string {
	x.t.Helper()
	var screen string
	for _, p := range patterns {
		re := regexp.MustCompile("(?m)" + p)
		poll(x.t, "a screen with "+p, func() bool {
			screen = x.tmux("capture-pane", "-p")
			return re.MatchString(screen)
		})
	}
	return screen
}

// left waits for the program's end and returns its exit code.
func (x *terminal) left() string {
	x.t.Helper()
	var code []byte
	poll(x.t, "the end of the program", func() bool {
		code, _ = os.ReadFile(x.exit)
		return len(code) > 0
	})
	return strings.TrimSpace(string(code))
}

// TestScreen watches the demo on a real terminal: lanes appear while people
// talk, the view freezes and goes on, and leaving keeps a summary on the normal
// screen.
func TestScreen(t *testing.T) {
	x := inTerminal(t, 100, 30, "live", "--input", demoFile)
	x.shows("SPEAKER_00", "connected", "SPEAKER_01")
	x.tmux("send-keys", "Space")
	x.shows("FROZEN")
	x.tmux("send-keys", "Space")
	poll(t, "a screen that moves again", func() bool { return !strings.Contains(x.tmux("capture-pane", "-p"), "FROZEN") })
	x.tmux("resize-window", "-x", "40", "-y", "8")
	x.shows("SPEAKER_01|S.*01")
	x.tmux("resize-window", "-x", "100", "-y", "30")
	x.tmux("send-keys", "q")
	if code := x.left(); code != "0" {
		t.Errorf("q leaves with %s, want 0", code)
	}
	x.shows("SPEAKER_00 .*%")
	if alternate := strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on}")); alternate != "0" {
		t.Error("the alternate screen is still on")
	}
}

// TestScreenInterrupt leaves with ctrl+c: the same end, and the code for it.
func TestScreenInterrupt(t *testing.T) {
	x := inTerminal(t, 80, 24, "live", "--input", demoFile)
	x.shows("SPEAKER_00")
	x.tmux("send-keys", "C-c")
	if code := x.left(); code != "130" {
		t.Errorf("ctrl+c leaves with %s, want 130", code)
	}
	x.shows("SPEAKER_00 .*%")
}

// TestScreenFailure shows why nothing works, and what to do, without a screen.
func TestScreenFailure(t *testing.T) {
	x := inTerminal(t, 80, 24, "live", "--input", "missing.wav")
	x.shows("^hubbub: .*missing.wav")
	if code := x.left(); code != "1" {
		t.Errorf("a missing file exits with %s, want 1", code)
	}
}

// TestAccessible runs the display for screen readers: sentences, no escapes.
func TestAccessible(t *testing.T) {
	x := inTerminal(t, 80, 40, "live", "--input", demoFile, "--pace", "fast", "--accessible")
	screen := x.shows("^Connected to", "^SPEAKER_00, 0:0")
	if code := x.left(); code != "0" {
		t.Errorf("exit code %s, want 0", code)
	}
	if strings.ContainsAny(screen, "█▌│") {
		t.Error("the accessible display draws")
	}
}

// TestAccessibleCommands talks to the display for screen readers: a name given
// is the name said, and leaving asks for what is not kept.
func TestAccessibleCommands(t *testing.T) {
	x := inTerminal(t, 80, 40, "live", "--input", demoFile, "--accessible")
	x.shows("^Type help and enter", "^SPEAKER_00, 0:0")
	x.tmux("send-keys", "name 1 Anna", "Enter")
	x.shows("^SPEAKER_00 is now Anna")
	x.tmux("send-keys", "who", "Enter")
	x.shows("^1: Anna, .* percent")
	x.tmux("send-keys", "quit", "Enter")
	x.shows("^Names and bookmarks are not kept")
	x.tmux("send-keys", "quit", "Enter")
	if code := x.left(); code != "0" {
		t.Errorf("quit leaves with %s, want 0", code)
	}
	x.shows("^Anna: ")
}
