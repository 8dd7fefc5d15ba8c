package tui

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/testkit"
)

// terminal is a tmux of its own that runs this test binary as runSample does.
type terminal struct {
	t      *testing.T
	socket string
}

var terminals atomic.Int32

func openTerminal(t *testing.T, w, h int, spec string, env ...string) *terminal {
	t.Helper()
	self, err := os.Executable()
	testkit.NoError(t, err)
	// With CI set, the colour library takes no terminal for one.
	words := append([]string{"env", "-u", "CI", "LC_ALL=C.UTF-8", "HUBBUB_TUI_SAMPLE='" + spec + "'"}, env...)
	// A shell stays behind, as in a user's terminal.
	return emptyTerminal(t, w, h,
		"echo before; "+strings.Join(words, " ")+" '"+self+"'; echo status $?; stty -a | tr ' ' '\\n' | grep -x -e echo -e -echo -e icanon -e -icanon; exec cat")
}

// emptyTerminal is a tmux of its own with a command of the shell.
func emptyTerminal(t *testing.T, w, h int, command string) *terminal {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a terminal")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("HUBBUB_REQUIRE_TMUX") == "1" {
			t.Fatal("tmux is required and not installed")
		}
		t.Skip("tmux is not installed: the screen is not tested in a real terminal")
	}
	x := &terminal{t: t, socket: fmt.Sprintf("hubbub-%d-%d", os.Getpid(), terminals.Add(1))}
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", x.socket, "kill-server").Run() })
	x.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), command)
	return x
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-L", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (x *terminal) screen(args ...string) string {
	return x.tmux(append([]string{"capture-pane", "-p"}, args...)...)
}

// shows waits until the screen matches all of the expressions.
func (x *terminal) shows(exprs ...string) string {
	x.t.Helper()
	last := ""
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		last = x.screen()
		all := true
		for _, e := range exprs {
			all = all && regexp.MustCompile(e).MatchString(last)
		}
		if all {
			return last
		}
	}
	x.t.Fatalf("the screen does not come to show %q; it is:\n%s", exprs, last)
	return ""
}

// types enters a text.
func (x *terminal) types(text string) {
	x.t.Helper()
	x.tmux("send-keys", "-l", text)
}

func (x *terminal) keys(keys ...string) {
	x.t.Helper()
	x.tmux(append([]string{"send-keys"}, keys...)...)
}

// hasQuit waits for the normal screen after the program, and checks its
// terminal settings.
func (x *terminal) hasQuit(exprs ...string) {
	x.t.Helper()
	s := x.shows(append([]string{`(?m)^before$`, `(?m)^status 0$`, `(?m)^echo$`, `(?m)^icanon$`}, exprs...)...)
	if strings.Contains(s, "across") {
		x.t.Errorf("the screen is still there:\n%s", s)
	}
	if got := strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}")); got != "0 1" {
		x.t.Errorf("alternate screen and cursor are %q, want 0 1", got)
	}
}

func TestTmuxKeysAndQuit(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 100, 30, "people=4 at=100 speed=4")
	x.shows(`SPEAKER_03`, `● connected`, `60 s across`, `█`)
	x.keys("+")
	x.shows(`30 s across`)
	x.keys("-", "-")
	x.shows(`whole session`)
	x.keys("?")
	x.shows(`freeze the view`, `interrupt`)
	x.keys("?")
	x.keys("Space")
	x.shows(`FROZEN -\d`)
	x.keys("Space", "+", "+", "Left")
	x.shows(`BACK`)
	x.keys("End")
	x.keys("Home")
	x.shows(`BACK`, `0:00`)
	x.keys("q")
	x.hasQuit(`quit by q`, `hubbub  1:\d\d  4 speakers  \d+ turns`, `SPEAKER_00  \d:\d\d +\d+%`)
}

func TestTmuxResize(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24, "people=8 at=100 speed=1")
	x.shows(`SPEAKER_07`)
	for _, size := range [][2]int{{120, 40}, {40, 8}, {30, 5}, {10, 2}, {200, 50}, {41, 9}, {80, 24}} {
		x.tmux("resize-window", "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]))
		if size[0] < minWidth || size[1] < minHeight {
			x.shows(`^1:\d\d`)
			continue
		}
		x.shows(`SPEAKER_00`, `across`)
	}
	// After many sizes in quick succession the screen is complete.
	for i := range 30 {
		x.tmux("resize-window", "-x", fmt.Sprint(20+i*5), "-y", fmt.Sprint(4+i))
	}
	x.tmux("resize-window", "-x", "90", "-y", "26")
	s := x.shows(`SPEAKER_00`, `SPEAKER_07`, `across`, `connected`)
	if n := strings.Count(s, "hubbub"); n != 1 {
		t.Errorf("after many sizes the header is there %d times:\n%s", n, s)
	}
	// When the alternate screen is left at another size than it was entered at, tmux
	// wraps its long lines and adds one to the normal screen.
	x.tmux("resize-window", "-x", "80", "-y", "24")
	x.shows(`30 s across`)
	x.keys("q")
	x.hasQuit(`quit by q`)
}

func TestTmuxFinishedStaysUntilQ(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 100, 24, "people=3 at=19 length=20 speed=4 finish=1")
	x.shows(`■ finished · q to quit`, `0:20 / 0:20`)
	x.keys("q")
	x.hasQuit(`hubbub  0:20`)
}

func TestTmuxWithoutColours(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24, "people=4 at=50 speed=1", "COLORTERM=truecolor", "NO_COLOR=1")
	x.shows(`SPEAKER_00`)
	if s := x.screen("-e"); regexp.MustCompile(`\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[;m]`).MatchString(s) {
		t.Errorf("with NO_COLOR the screen has colours: %q", s)
	}
	y := openTerminal(t, 80, 24, "people=4 at=50 speed=1", "COLORTERM=truecolor")
	y.shows(`SPEAKER_00`)
	if s := y.screen("-e"); !strings.Contains(s, "38;2;67;207;255") {
		t.Errorf("the first speaker is not in the first colour: %q", s)
	}
}

func TestTmuxAsciiAndDumb(t *testing.T) {
	t.Parallel()
	for _, x := range []*terminal{
		openTerminal(t, 80, 24, "people=4 at=50 speed=1 ascii=1"),
		openTerminal(t, 80, 24, "people=4 at=50 speed=1", "TERM=dumb"),
	} {
		for _, r := range x.shows(`SPEAKER_00`, `\* connected`) {
			if r > 0x7e {
				t.Errorf("%q on an ASCII screen", r)
				break
			}
		}
		x.keys("q")
		x.hasQuit(`quit by q`)
	}
}

// TestTmuxSuspendAndResume: ctrl+z restores the terminal for the shell, fg the
// complete screen.
func TestTmuxSuspendAndResume(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: there is no job control to test with")
	}
	self, err := os.Executable()
	testkit.NoError(t, err)
	x := emptyTerminal(t, 100, 30, "PS1='prompt> ' exec bash --noprofile --norc -i")
	x.shows(`(?m)^prompt>`)
	x.keys("HUBBUB_TUI_SAMPLE='people=4 at=50 speed=1' LC_ALL=C.UTF-8 '"+self+"'", "Enter")
	x.shows(`SPEAKER_03`, `● connected`)
	for range 2 {
		x.keys("C-z")
		s := x.shows(`Stopped`)
		if strings.Contains(s, "across") {
			t.Errorf("the suspended screen is still there:\n%s", s)
		}
		x.keys("stty -a | grep -o -w -e icanon -e -icanon", "Enter")
		x.shows(`(?m)^icanon`)
		x.keys("clear; fg", "Enter")
		s = x.shows(`SPEAKER_00`, `SPEAKER_03`, `across`, `connected`)
		if strings.Count(s, "hubbub") != 1 {
			t.Errorf("the resumed screen is not whole:\n%s", s)
		}
	}
	x.keys("-")
	x.shows(`whole session`) // and keys work
	x.keys("q")
	x.shows(`quit by q`)
}

// TestTmuxAnnotations names, merges, bookmarks and exports as a user does, on a
// screen of every size that has lanes.
func TestTmuxAnnotations(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 8}, {120, 34}} {
		x := openTerminal(t, size[0], size[1], "people=4 at=100 speed=1")
		x.shows(`SPEAKER_00`, `across`)
		x.keys("1", "r")
		x.shows(`name of SPEAKER`)
		x.keys("李雷 A", "Enter")
		x.shows(`李雷 A `)
		x.keys("2", "m", "1")
		x.shows(`merged SPEAKER_01 into`)
		x.keys("u")
		x.shows(`undone: merge`, `SPEAKER_01`)
		x.keys("b")
		x.shows(`bookmark 1:4\d`)
		x.keys("a note", "Enter")
		x.shows(`◆ 1:4\d +a note`)
		x.keys("t", "Up", "Up", ">")
		x.shows(`the turn of .* at \d:\d\d`)
		x.keys("3")
		x.shows(`is SPEAKER_0`)
		x.keys("u", ":")
		x.types("timel")
		x.keys("Tab", "Enter") // closes the list
		x.shows(`across`, `SPEAKER_00|李雷 A`)
		x.keys("f")
		x.shows(`f timeline`)
		x.keys("Escape")
		x.shows(`SPEAKER_01 +\d:\d\d`) // before the next key: escape and a letter are alt and the letter
		x.keys("e")
		x.shows(`wrote meeting.html`)
		x.keys("q") // what was exported is saved: no question
		x.shows(`(?m)^status 0$`)
		if size[1] > 20 { // on the low one the summary has scrolled away
			x.hasQuit(`quit by q`, `李雷 A +\d:\d\d`)
		}
	}
}
