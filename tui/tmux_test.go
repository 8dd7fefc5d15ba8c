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
)

// terminal is a tmux of its own that runs this test binary as show does.
type terminal struct {
	t      *testing.T
	socket string
}

var terminals atomic.Int32

func openTerminal(t *testing.T, w, h int, spec string, env ...string) *terminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// With CI set, the colour library takes no terminal for one.
	words := append([]string{"env", "-u", "CI", "LC_ALL=C.UTF-8", "HUBBUB_TUI_SHOW='" + spec + "'"}, env...)
	// A shell stays behind, as in a user's terminal.
	return emptyTerminal(t, w, h,
		"echo before; "+strings.Join(words, " ")+" '"+self+"'; echo status $?; stty -a | tr ' ' '\\n' | grep -x -e echo -e -echo -e icanon -e -icanon; exec cat")
}

// emptyTerminal is a tmux of its own with a command of the shell.
func emptyTerminal(t *testing.T, w, h int, command string) *terminal {
	t.Helper()
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

func (x *terminal) keys(keys ...string) {
	x.t.Helper()
	x.tmux(append([]string{"send-keys"}, keys...)...)
}

// leftBehind waits for the normal screen after the program, and looks at its
// terminal settings.
func (x *terminal) leftBehind(exprs ...string) {
	x.t.Helper()
	s := x.shows(append([]string{`(?m)^before$`, `(?m)^status 0$`, `(?m)^echo$`, `(?m)^icanon$`}, exprs...)...)
	if strings.Contains(s, "across") {
		x.t.Errorf("the screen was not left:\n%s", s)
	}
	if got := strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}")); got != "0 1" {
		x.t.Errorf("alternate screen and cursor are %q, want 0 1", got)
	}
}

func TestTmuxKeysAndLeaving(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 100, 30, "people=4 at=100 speed=1")
	x.shows(`SPEAKER_03`, `● connected`, `60 s across`, `█`)
	x.keys("+")
	x.shows(`30 s across`)
	x.keys("-", "-")
	x.shows(`2 min across`)
	x.keys("?")
	x.shows(`freeze the view`, `interrupt`)
	x.keys("?")
	x.keys("Space")
	frozen := x.shows(`FROZEN -\d`) // a second later: the whole frame is there
	x.shows(`FROZEN -(0:0[3-9]|0:[1-9]|[1-9])`)
	moved := x.screen()
	for y := 2; y < 26; y++ {
		a, b := strings.Split(frozen, "\n")[y], strings.Split(moved, "\n")[y]
		if a != b && !strings.Contains(a, "keys") {
			t.Errorf("row %d moved while frozen:\n%s\n%s", y, a, b)
		}
	}
	x.keys("Space", "+", "+", "Left")
	x.shows(`BACK`)
	x.keys("End")
	x.keys("Home")
	x.shows(`BACK`, `0:00`)
	x.keys("q")
	x.leftBehind(`left by q`, `hubbub  1:\d\d  4 speakers  \d+ turns`, `SPEAKER_00  \d:\d\d +\d+%`)
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
	// A storm of sizes leaves a whole screen.
	for i := range 30 {
		x.tmux("resize-window", "-x", fmt.Sprint(20+i*5), "-y", fmt.Sprint(4+i))
	}
	x.tmux("resize-window", "-x", "90", "-y", "26")
	s := x.shows(`SPEAKER_00`, `SPEAKER_07`, `across`, `connected`)
	if n := strings.Count(s, "hubbub"); n != 1 {
		t.Errorf("after a storm of sizes the header is there %d times:\n%s", n, s)
	}
	// Leaving the alternate screen at another size than it was entered at, tmux
	// itself wraps its long lines and glues one to the normal screen.
	x.tmux("resize-window", "-x", "80", "-y", "24")
	x.shows(`30 s across`)
	x.keys("q")
	x.leftBehind(`left by q`)
}

func TestTmuxFinishedStaysUntilQ(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 100, 24, "people=3 at=19 length=20 speed=1 finish=1")
	x.shows(`■ finished · q to leave`, `0:20 / 0:20`)
	x.keys("q")
	x.leftBehind(`hubbub  0:20`)
}

func TestTmuxInterrupt(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24, "people=4 at=50 speed=1")
	x.shows(`SPEAKER_00`)
	x.keys("C-c")
	x.leftBehind(`left by ctrl\+c`)
}

func TestTmuxContextEnds(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24, "people=4 at=50 speed=1 cancel=2")
	x.leftBehind(`ended: context deadline exceeded`)
}

func TestTmuxPanicLeavesTheTerminalSane(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 100, 60, "people=4 at=50 speed=1 crash=1")
	x.leftBehind(`ended: the display broke off: panic: a made-up panic`)
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
		x.leftBehind(`left by q`)
	}
}
