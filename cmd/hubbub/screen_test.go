package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/cmd/hubbub/internal/recording"
)

// TestScreen runs a session on a real terminal: lanes appear while people talk,
// the view freezes and continues, and quitting prints a summary on the normal
// screen.
func TestScreen(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 100, 30, "live", "--input", talkFile(t, 0))
	x.shows("SPEAKER_00", "connected", "SPEAKER_01")
	x.keys("Space")
	x.shows("FROZEN")
	x.keys("Space")
	poll(t, "a screen that moves again", 50*time.Millisecond, func() bool { return !strings.Contains(x.screen(), "FROZEN") })
	x.tmux("resize-window", "-x", "40", "-y", "8")
	x.shows("SPEAKER_01|S.*01")
	x.tmux("resize-window", "-x", "100", "-y", "30")
	x.keys("q")
	if code := x.exitCode(); code != "0" {
		t.Errorf("q exits with %s, want 0", code)
	}
	x.shows("SPEAKER_00 .*%")
	if alternate := strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on}")); alternate != "0" {
		t.Error("the alternate screen is still on")
	}
}

// TestScreenRecords starts and stops recordings with a key: each is a recording of
// its own, with the turns of its part, and its end is reported.
func TestScreenRecords(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 100, 30, "live", "--input", talkFile(t, 0))
	x.shows("SPEAKER_00", "connected", "0:0[3-9]|0:[1-5]")
	x.keys("R")
	x.shows(`REC 0:0[3-9]`, "SPEAKER_01")
	x.keys("R")
	x.shows(`recorded 0:\d\d into hubbub-\d+-\d+: \d+ turns? of \d speakers?, [\d.]+ kB`)
	poll(t, "a header without REC", 20*time.Millisecond, func() bool { return !strings.Contains(x.screen(), "REC ") })
	x.keys("R")
	x.shows(`REC 0:0[1-9]`)
	x.keys("q")
	if code := x.exitCode(); code != "0" {
		t.Errorf("q exits with %s, want 0", code)
	}
	x.shows("hubbub: a recording is in hubbub-")
	dirs, err := filepath.Glob(filepath.Join(x.dir, "hubbub-*"))
	if err != nil || len(dirs) != 2 {
		t.Fatalf("recordings %q, %v", dirs, err)
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

// TestScreenInterrupt quits with ctrl+c: the same end, and its exit code.
func TestScreenInterrupt(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 24, "live", "--input", talkFile(t, 0))
	x.shows("SPEAKER_00")
	x.keys("C-c")
	if code := x.exitCode(); code != "130" {
		t.Errorf("ctrl+c exits with %s, want 130", code)
	}
	x.shows("SPEAKER_00 .*%")
}

// TestScreenFailure prints an error before the screen opens.
func TestScreenFailure(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 24, "live", "--input", "missing.wav")
	x.shows("^hubbub: .*missing.wav")
	if code := x.exitCode(); code != "1" {
		t.Errorf("a missing file exits with %s, want 1", code)
	}
}

// TestAccessible runs the display for screen readers: sentences, no escapes.
func TestAccessible(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 40, "live", "--input", talkFile(t, 20), "--pace", "fast", "--accessible")
	screen := x.shows("^Connected to", "^SPEAKER_00, 0:0")
	if code := x.exitCode(); code != "0" {
		t.Errorf("exit code %s, want 0", code)
	}
	if strings.ContainsAny(screen, "█▌│") {
		t.Error("the accessible display draws")
	}
}

// TestAccessibleCommands types commands: a new name is used from then on, and
// quitting asks for confirmation of unsaved changes.
func TestAccessibleCommands(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 40, "live", "--input", talkFile(t, 0), "--accessible")
	x.shows("^Type help and enter", "^SPEAKER_00, 0:0")
	x.keys("name 1 Anna", "Enter")
	x.shows("^SPEAKER_00 is now Anna")
	x.keys("who", "Enter")
	x.shows("^1: Anna, .* percent")
	x.keys("quit", "Enter")
	x.shows("^Names and bookmarks are not saved")
	x.keys("quit", "Enter")
	if code := x.exitCode(); code != "0" {
		t.Errorf("quit exits with %s, want 0", code)
	}
	x.shows("^Anna: ")
}

// TestAccessibleTyping types half a command: what is announced meanwhile goes
// above it, and does not become a part of it. ctrl+c acts as it does elsewhere,
// and leaves the terminal as a shell needs it.
func TestAccessibleTyping(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 40, "live", "--input", talkFile(t, 0), "--accessible")
	x.shows("^Type help and enter", "^SPEAKER_00 is speaking")
	x.types("name 1 An")
	x.shows("^SPEAKER_00, 0:0", "^SPEAKER_01 is speaking")
	screen := x.shows("^name 1 An *\n*\\z")
	if n := strings.Count(screen, "name 1 An"); n != 1 {
		t.Errorf("the half-typed command is on the screen %d times:\n%s", n, screen)
	}
	x.types("na")
	x.keys("Enter")
	x.shows("^name 1 Anna$", "^SPEAKER_00 is now Anna")
	x.keys("C-c")
	if code := x.exitCode(); code != "130" {
		t.Errorf("ctrl+c exits with %s, want 130", code)
	}
	x.sane()
}
