package main

import (
	"strings"
	"testing"
	"time"
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
