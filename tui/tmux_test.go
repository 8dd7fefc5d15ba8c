package tui

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// openTerminal runs this test binary as runSample does, in a terminal.
func openTerminal(t *testing.T, w, h int, spec string, env ...string) *testkit.Terminal {
	t.Helper()
	self, err := os.Executable()
	testkit.NoError(t, err)
	// With CI set, the colour library takes no terminal for one.
	words := append([]string{"env", "-u", "CI", "LC_ALL=C.UTF-8", "HUBBUB_TUI_SAMPLE='" + spec + "'"}, env...)
	// A shell stays behind, as in a user's terminal.
	return testkit.OpenTerminal(t, w, h, "",
		"echo before; "+strings.Join(words, " ")+" '"+self+"'; echo status $?; stty -a | tr ' ' '\\n' | grep -x -e echo -e -echo -e icanon -e -icanon; exec cat")
}

// hasQuit waits for the normal screen after the program, and checks its
// terminal settings.
func hasQuit(t *testing.T, x *testkit.Terminal, exprs ...string) {
	t.Helper()
	s := x.Shows(append([]string{`^before$`, `^status 0$`, `^echo$`, `^icanon$`}, exprs...)...)
	if strings.Contains(s, "across") {
		t.Errorf("the screen is still there:\n%s", s)
	}
	if got := x.Modes(); got != "0 1 0" {
		t.Errorf("alternate screen, cursor and mouse are %q, want 0 1 0", got)
	}
}

func TestTmuxKeysAndQuit(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 100, 30, "people=4 at=100 speed=4")
	x.Shows(`SPEAKER_03`, `● connected`, `60 s across`, `█`)
	x.Keys("+")
	x.Shows(`30 s across`)
	x.Keys("-", "-")
	x.Shows(`whole session`)
	x.Keys("?")
	x.Shows(`freeze the view`, `interrupt`)
	x.Keys("?")
	x.Keys("Space")
	x.Shows(`FROZEN -\d`)
	x.Keys("Space", "+", "+", "Left")
	x.Shows(`BACK`)
	x.Keys("End")
	x.Keys("Home")
	x.Shows(`BACK`, `0:00`)
	x.Keys("q")
	hasQuit(t, x, `quit by q`, `hubbub  1:\d\d  4 speakers  \d+ turns`, `SPEAKER_00  \d:\d\d +\d+%`)
}

func TestTmuxResize(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24, "people=8 at=100 speed=1")
	x.Shows(`SPEAKER_07`)
	for _, size := range [][2]int{{120, 40}, {40, 8}, {30, 5}, {10, 2}, {200, 50}, {41, 9}, {80, 24}} {
		x.Resize(size[0], size[1])
		if size[0] < minWidth || size[1] < minHeight {
			x.Shows(`\A1:\d\d`)
			continue
		}
		x.Shows(`SPEAKER_00`, `across`)
	}
	// After many sizes in quick succession the screen is complete.
	for i := range 30 {
		x.Resize(20+i*5, 4+i)
	}
	x.Resize(90, 26)
	s := x.Shows(`SPEAKER_00`, `SPEAKER_07`, `across`, `connected`)
	if n := strings.Count(s, "hubbub"); n != 1 {
		t.Errorf("after many sizes the header is there %d times:\n%s", n, s)
	}
	// When the alternate screen is left at another size than it was entered at, tmux
	// wraps its long lines and adds one to the normal screen.
	x.Resize(80, 24)
	x.Shows(`30 s across`)
	x.Keys("q")
	hasQuit(t, x, `quit by q`)
}

func TestTmuxFinishedStaysUntilQ(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 100, 24, "people=3 at=19 length=20 speed=4 finish=1")
	x.Shows(`■ finished`, `0:20 / 0:20`)
	x.Keys("q")
	hasQuit(t, x, `hubbub  0:20`)
}

func TestTmuxWithoutColours(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24, "people=4 at=50 speed=1", "COLORTERM=truecolor", "NO_COLOR=1")
	x.Shows(`SPEAKER_00`)
	if s := x.Screen("-e"); regexp.MustCompile(`\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[;m]`).MatchString(s) {
		t.Errorf("with NO_COLOR the screen has colours: %q", s)
	}
	y := openTerminal(t, 80, 24, "people=4 at=50 speed=1", "COLORTERM=truecolor")
	y.Shows(`SPEAKER_00`)
	if s := y.Screen("-e"); !strings.Contains(s, "38;2;67;207;255") {
		t.Errorf("the first speaker is not in the first colour: %q", s)
	}
}

func TestTmuxAsciiAndDumb(t *testing.T) {
	t.Parallel()
	for _, x := range []*testkit.Terminal{
		openTerminal(t, 80, 24, "people=4 at=50 speed=1 ascii=1"),
		openTerminal(t, 80, 24, "people=4 at=50 speed=1", "TERM=dumb"),
	} {
		for _, r := range x.Shows(`SPEAKER_00`, `\* connected`) {
			if r > 0x7e {
				t.Errorf("%q on an ASCII screen", r)
				break
			}
		}
		x.Keys("q")
		hasQuit(t, x, `quit by q`)
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
	x := testkit.OpenTerminal(t, 100, 30, "", "PS1='prompt> ' exec bash --noprofile --norc -i")
	x.Shows(`^prompt>`)
	x.Keys("HUBBUB_TUI_SAMPLE='people=4 at=50 speed=1' LC_ALL=C.UTF-8 '"+self+"'", "Enter")
	x.Shows(`SPEAKER_03`, `● connected`)
	for range 2 {
		x.Keys("C-z")
		s := x.Shows(`Stopped`)
		if strings.Contains(s, "across") {
			t.Errorf("the suspended screen is still there:\n%s", s)
		}
		x.Keys("stty -a | grep -o -w -e icanon -e -icanon", "Enter")
		x.Shows(`^icanon`)
		x.Keys("clear; fg", "Enter")
		s = x.Shows(`SPEAKER_00`, `SPEAKER_03`, `across`, `connected`)
		if strings.Count(s, "hubbub") != 1 {
			t.Errorf("the resumed screen is not whole:\n%s", s)
		}
	}
	x.Keys("-")
	x.Shows(`whole session`) // and keys work
	x.Keys("q")
	x.Shows(`quit by q`)
}

// TestTmuxAnnotations names, merges, bookmarks and exports as a user does, on a
// screen of every size that has lanes.
func TestTmuxAnnotations(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 8}, {120, 34}} {
		x := openTerminal(t, size[0], size[1], "people=4 at=100 speed=1")
		x.Shows(`SPEAKER_00`, `across`)
		x.Keys("1", "r")
		x.Shows(`name of SPEAKER`)
		x.Keys("李雷 A", "Enter")
		x.Shows(`李雷 A `)
		x.Keys("2", "m", "1")
		x.Shows(`merged SPEAKER_01 into`)
		x.Keys("u")
		x.Shows(`undone: merge`, `SPEAKER_01`)
		x.Keys("b")
		x.Shows(`bookmark 1:4\d`)
		x.Keys("a note", "Enter")
		x.Shows(`◆ 1:4\d +a note`)
		x.Keys("t", "Up", "Up", ">")
		x.Shows(`the turn of .* at \d:\d\d`)
		x.Keys("3")
		x.Shows(`is SPEAKER_0`)
		x.Keys("u", ":")
		x.Types("timel")
		x.Keys("Tab", "Enter") // closes the list
		x.Shows(`across`, `SPEAKER_00|李雷 A`)
		x.Keys("f")
		x.Shows(`f timeline`)
		x.Keys("Escape")
		x.Shows(`SPEAKER_01 +\d:\d\d`) // before the next key: escape and a letter are alt and the letter
		x.Keys("e")
		x.Shows(`wrote meeting.html`)
		x.Keys("q") // what was exported is saved: no question
		x.Shows(`^status 0$`)
		if size[1] > 20 { // on the low one the summary has scrolled away
			hasQuit(t, x, `quit by q`, `李雷 A +\d:\d\d`)
		}
	}
}
