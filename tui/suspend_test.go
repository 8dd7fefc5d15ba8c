package tui

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTmuxSuspendAndResume: ctrl+z gives the shell its terminal back, fg the
// screen its own, whole.
func TestTmuxSuspendAndResume(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: there is no job control to test with")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := emptyTerminal(t, 100, 30, "PS1='prompt> ' exec bash --noprofile --norc -i")
	x.shows(`(?m)^prompt>`)
	x.keys("HUBBUB_TUI_SHOW='people=4 at=50 speed=1' LC_ALL=C.UTF-8 '"+self+"'", "Enter")
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
	x.shows(`2 min across`) // and hears keys
	x.keys("q")
	x.shows(`left by q`)
}

// TestTmuxPeople goes the way of a user through names, merging and marks, on a
// screen of every size that has lanes.
func TestTmuxPeople(t *testing.T) {
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
		x.keys("f")
		x.shows(`f timeline`)
		x.keys("Escape")
		x.shows(`SPEAKER_01 +\d:\d\d`) // before the next key: escape and a letter are alt and the letter
		x.keys("e")
		x.shows(`wrote meeting.html`)
		x.keys("q") // what was exported is kept: no question
		x.shows(`(?m)^status 0$`)
		if size[1] > 20 { // on the low one the summary has scrolled away
			x.leftBehind(`left by q`, `李雷 A +\d:\d\d`)
		}
	}
}
