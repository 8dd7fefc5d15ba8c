package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol/testkit"
)

// TestScreen runs a session on a real terminal: lanes appear while people talk,
// the view freezes and continues, and ctrl+c prints a summary on the normal
// screen. That q does so is TestReplayScreen.
func TestScreen(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 100, 30, "live", "--input", talkFile(t, 0))
	x.Shows("SPEAKER_00", "connected", "SPEAKER_01")
	x.Keys("Space")
	x.Shows("FROZEN")
	x.Keys("Space")
	testkit.Eventually(t, "a screen that moves again", func() bool { return !strings.Contains(x.Screen(), "FROZEN") })
	x.Keys("C-c")
	x.ends(exitInterrupted)
	x.Shows("SPEAKER_00 .*%")
	x.sane()
}

// TestScreenSizes: the screen is complete at every size, also after many in quick succession.
func TestScreenSizes(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 24, "live", "--input", talkFile(t, 0), "--pace", "fast")
	x.Shows("finished", "SPEAKER_02")
	for _, size := range [][2]int{{120, 40}, {40, 8}, {200, 50}, {41, 9}} {
		x.Resize(size[0], size[1])
		x.Shows("SPEAKER_00", "across|whole session")
	}
	for _, size := range [][2]int{{30, 5}, {10, 2}} {
		x.Resize(size[0], size[1])
		x.Shows(`\A0:2\d`)
	}
	for i := range 30 {
		x.Resize(20+i*5, 4+i)
	}
	x.Resize(90, 26)
	screen := x.Shows(`\A hubbub `, "SPEAKER_00", "SPEAKER_02", "finished", "across|whole session")
	testkit.Equal(t, strings.Count("\n"+screen, "\n hubbub "), 1, "headers after many sizes", screen)
}

// TestScreenColours: the colours and characters of the screen are those that the terminal has.
func TestScreenColours(t *testing.T) {
	t.Parallel()
	colour := regexp.MustCompile(`\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[;m]`)
	for _, c := range []struct {
		env            []string
		args           []string
		colours, ascii bool
	}{
		{[]string{"COLORTERM=truecolor"}, nil, true, false},
		{[]string{"COLORTERM=truecolor", "NO_COLOR=1"}, nil, false, false},
		{[]string{"TERM=dumb"}, nil, false, true},
		{[]string{"COLORTERM=truecolor"}, []string{"--ascii"}, true, true},
	} {
		x := inTerminalWith(t, 80, 24, c.env, append([]string{"live", "--input", talkFile(t, 0), "--pace", "fast"}, c.args...)...)
		x.Shows("finished", "SPEAKER_00")
		screen := x.Screen("-e")
		if has := strings.Contains(screen, "38;2;67;207;255"); has != c.colours || !c.colours && colour.MatchString(screen) {
			t.Errorf("%v %v: the first speaker has its colour: %v\n%q", c.env, c.args, has, screen)
		}
		if other := strings.ContainsFunc(x.Screen(), func(r rune) bool { return r > 0x7e }); other == c.ascii {
			t.Errorf("%v %v: other characters than ASCII: %v", c.env, c.args, other)
		}
		x.Keys("q")
		x.ends(exitOK)
	}
}

// TestScreenSuspend: ctrl+z restores the terminal for the shell, fg the complete screen, also of a program
// that another one stopped, which restored nothing.
func TestScreenSuspend(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: there is no job control to test with")
	}
	x := newTerminal(t)
	x.open(100, 30, "PS1='prompt> ' exec bash --noprofile --norc -i")
	x.Shows(`^prompt>`)
	x.Types(shellquote.Join(slices.Concat([]string{"sh", "-c", `echo $$ >pid; exec env "$@"`, "sh"}, programEnv(), []string{testProgram(t), "live", "--input", talkFile(t, 0), "--pace", "fast"})...))
	x.Keys("Enter")
	x.Shows("SPEAKER_00", "finished")
	for _, stop := range []string{"-TSTP", "", "-STOP", "", "-STOP"} {
		if stop == "" {
			x.Keys("C-z")
			if screen := x.Shows("Stopped"); strings.Contains(screen, "finished") {
				t.Errorf("the suspended screen is still there:\n%s", screen)
			}
		} else {
			pid := testkit.Must(os.ReadFile(filepath.Join(x.dir, "pid")))(t)
			testkit.NoError(t, exec.Command("kill", stop, strings.TrimSpace(string(pid))).Run())
			x.Shows("Stopped")
		}
		x.Keys("stty -a | grep -o -w -e icanon -e -icanon", "Enter")
		x.Shows("^icanon")
		x.Keys("clear; fg", "Enter")
		testkit.Eventually(t, "the whole screen and nothing else", func() bool {
			screen := "\n" + x.Screen()
			return strings.Count(screen, "\n hubbub ") == 1 && strings.Contains(screen, "finished") && !strings.Contains(screen, "prompt>")
		})
		x.Keys("?") // and keys work
		x.Shows("set a bookmark")
		x.Keys("?")
		testkit.Eventually(t, "no help", func() bool { return !strings.Contains(x.Screen(), "set a bookmark") })
	}
}

// TestScreenRecords starts and stops recordings with a key: each is a recording of
// its own, with the turns of its part, and its end is reported.
func TestScreenRecords(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 100, 30, "live", "--input", talkFile(t, 0))
	x.Shows("SPEAKER_00", "connected", "0:0[3-9]|0:[1-5]")
	x.Keys("R")
	x.Shows(`REC 0:0[3-9]`, "SPEAKER_01")
	x.Keys("R")
	x.Shows(`recorded 0:\d\d into hubbub-\d+-\d+, [\d.]+ kB`)
	testkit.Eventually(t, "a header without REC", func() bool { return !strings.Contains(x.Screen(), "REC ") })
	x.Keys("R")
	x.Shows(`REC 0:0[1-9]`)
	x.Keys("q")
	x.ends(exitOK)
	x.Shows("hubbub: a recording is in hubbub-")
	dirs := testkit.Files(t, x.dir, "hubbub-*")
	if len(dirs) != 2 {
		t.Fatalf("recordings %q", dirs)
	}
	for _, dir := range dirs {
		rec, err := recording.Read(t.Context(), dir)
		if err != nil || len(rec.Warnings) > 0 || rec.Info.Ended == nil {
			t.Errorf("%s: %v, %q", dir, err, rec.Warnings)
			continue
		}
		seconds := recordedSeconds(t, filepath.Join(dir, recording.AudioFile))
		for _, turn := range rec.Turns() {
			if turn.Start < 0 || turn.End > seconds+0.001 {
				t.Errorf("%s has %.1f s of audio and the turn %+v", dir, seconds, turn)
			}
		}
		if dir == dirs[0] && len(rec.Turns()) == 0 {
			t.Errorf("%s has no turns", dir)
		}
	}
}

// TestScreenFailure prints an error before the screen opens.
func TestScreenFailure(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 24, "live", "--input", "missing.wav")
	x.Shows("^hubbub: .*missing.wav")
	x.ends(exitFailed)
}

// TestAccessibleCommands types commands: a new name is used from then on, the state of
// the connection is printed, and quitting asks for confirmation of unsaved changes.
func TestAccessibleCommands(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 100, 40, "live", "--input", talkFile(t, 0), "--accessible")
	x.Shows("^Type help and enter", "^SPEAKER_00, 0:0")
	x.Keys("name 1 Anna", "Enter")
	x.Shows("^SPEAKER_00 is now Anna")
	x.Keys("who", "Enter")
	x.Shows("^1: Anna, .* percent")
	x.Keys("wire", "Enter")
	x.Shows("^Open 0:", `^Pace [01]\.\d\d, `, "received event: start SPEAKER_00")
	x.Keys("quit", "Enter")
	x.Shows("^Names and bookmarks are not saved")
	x.Keys("quit", "Enter")
	x.ends(exitOK)
	x.Shows("^Anna: ")
}

// TestAccessibleTyping types half a command: what is announced meanwhile goes
// above it, and does not become a part of it. ctrl+c acts as it does elsewhere,
// and leaves the terminal as a shell needs it.
func TestAccessibleTyping(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 40, "live", "--input", talkFile(t, 0), "--accessible")
	x.Shows("^Connected to", "^Type help and enter", "^SPEAKER_00 is speaking")
	x.Types("name 1 An")
	x.Shows("^SPEAKER_00, 0:0", "^SPEAKER_01 is speaking")
	screen := x.Shows("^name 1 An *\n*\\z")
	testkit.Equal(t, strings.Count(screen, "name 1 An"), 1, "half-typed commands on the screen", screen)
	if strings.ContainsAny(screen, "█▌│") {
		t.Error("the accessible display draws")
	}
	x.Types("na")
	x.Keys("Enter")
	x.Shows("^name 1 Anna$", "^SPEAKER_00 is now Anna")
	x.Keys("C-c")
	x.ends(exitInterrupted)
	x.sane()
}

// TestHelpFitsTheTerminal: a description of a flag is continued below itself.
func TestHelpFitsTheTerminal(t *testing.T) {
	t.Parallel()
	inTerminal(t, 60, 30, "devices", "--help").Shows(`seconds of each\n {24}device's level`)
}

// TestScreenOfADamagedFile: why a file ends early stays on the screen, and is said once without one.
func TestScreenOfADamagedFile(t *testing.T) {
	t.Parallel()
	complete := testkit.Must(os.ReadFile(demoFile(t)))(t)
	cut := filepath.Join(testkit.ShortTempDir(t), "cut.flac")
	testkit.NoError(t, os.WriteFile(cut, complete[:len(complete)/10], 0o600))
	x := inTerminal(t, 120, 34, "live", "--input", cut, "--pace", "fast")
	x.Shows("^ hubbub  .*cut.flac", "^ truncated: ", "finished")
	x.Keys("q")
	x.ends(exitOK)
	out, errs := inProcess(t, exitOK, "", "live", "--input", cut, "--pace", "fast", "--accessible")
	testkit.Equal(t, strings.Count(out+errs, "truncated: "), 1, out, errs)
}
