package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// panicEnv names a file whose appearance makes the program panic, in a
// goroutine that nobody watches.
const panicEnv = "HUBBUB_TEST_PANIC"

func panicWhen(file string) {
	for !exists(file) {
		time.Sleep(10 * time.Millisecond)
	}
	panic("a defect made for a test")
}

// sane checks that the terminal is as a shell wants it: what is typed appears,
// and arrives line by line.
func (x *terminal) sane() {
	x.t.Helper()
	poll(x.t, "the normal screen and a cursor", func() bool {
		return strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}")) == "0 1 0"
	})
	x.left()
	// The terminal echoes the line, and cat, which runs now, says it again.
	poll(x.t, "typed text", func() bool {
		x.tmux("send-keys", "typed", "Enter")
		time.Sleep(50 * time.Millisecond)
		return strings.Count(x.tmux("capture-pane", "-p"), "typed\n") >= 2
	})
}

// TestPanic lets goroutines panic while the screen is up: the terminal is sane,
// the user is told, a report is kept, and the recording is whole. Where the
// program catches it, the session is ended in order, too.
func TestPanic(t *testing.T) {
	for _, c := range []struct {
		place, where, code string
	}{
		{"elsewhere", "panicWhen", "2"},
		{"display", "fullScreen", "1"},
		{"send", "session).send", "1"},
		{"fold", "session).fold", "1"},
		{"record", "recording).writeAudio", "1"},
	} {
		t.Run(c.place, func(t *testing.T) {
			dir := t.TempDir()
			trigger, rec := filepath.Join(dir, "now"), filepath.Join(dir, "rec")
			t.Setenv(panicEnv, c.place+":"+trigger)
			t.Setenv("XDG_CACHE_HOME", dir)
			t.Setenv("HOME", dir)
			x := inTerminal(t, 100, 30, "live", "--input", demoFile, "--record", rec)
			x.shows("connected")
			poll(t, "recorded audio", func() bool { st, err := os.Stat(filepath.Join(rec, audioFile)); return err == nil && st.Size() > 1000 })
			if err := os.WriteFile(trigger, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.place == "record" {
				// The session goes on without a recording, and says so.
				x.shows(`[1-9] dropped`)
				x.tmux("send-keys", "q")
			}
			x.shows("panic: a defect made for a test", "The report is")
			x.sane()
			if code := x.left(); code != c.code {
				t.Errorf("exit code %s, want %s", code, c.code)
			}
			var reports []string
			for _, pattern := range []string{"hubbub/crash-*.txt", "Library/Caches/hubbub/crash-*.txt"} {
				found, _ := filepath.Glob(filepath.Join(dir, pattern))
				reports = append(reports, found...)
			}
			if len(reports) != 1 {
				t.Fatalf("%d reports", len(reports))
			}
			text, err := os.ReadFile(reports[0])
			if err != nil || !strings.Contains(string(text), "a defect made for a test") || !strings.Contains(string(text), c.where) {
				t.Errorf("the report does not say what happened: %v\n%.2000s", err, text)
			}
			r, err := readRecording(context.Background(), rec)
			if err != nil || r.length <= 0 {
				t.Errorf("the recording cannot be read: %v", err)
			}
			var info sessionInfo
			raw, err := os.ReadFile(filepath.Join(rec, sessionFile))
			if err != nil || json.Unmarshal(raw, &info) != nil || c.code == "1" && info.Ended == nil {
				t.Errorf("the session was not ended in order: %v", err)
			}
		})
	}
}

// TestKilledScreen kills the program with SIGKILL while the screen is up.
func TestKilledScreen(t *testing.T) {
	if _, err := exec.LookPath("pkill"); err != nil {
		t.Skip("pkill is not installed")
	}
	x := inTerminal(t, 80, 24, "live", "--input", demoFile)
	x.shows("connected")
	x.kill("-KILL")
	x.sane()
}

// kill sends a signal to the program in the terminal, which the shell there
// has started.
func (x *terminal) kill(signal string) {
	x.t.Helper()
	shell := strings.TrimSpace(x.tmux("display-message", "-p", "#{pane_pid}"))
	if out, err := exec.Command("pkill", signal, "-P", shell).CombinedOutput(); err != nil {
		x.t.Fatalf("pkill: %v\n%s", err, out)
	}
}

// TestTerminalClosed takes the terminal away in the middle: the session is
// ended in order, and the recording says so.
func TestTerminalClosed(t *testing.T) {
	rec := filepath.Join(t.TempDir(), "rec")
	x := inTerminal(t, 80, 24, "live", "--input", demoFile, "--record", rec)
	x.shows("SPEAKER_00")
	x.tmux("kill-server")
	poll(t, "a recording that was ended in order", func() bool {
		var info sessionInfo
		raw, err := os.ReadFile(filepath.Join(rec, sessionFile))
		return err == nil && json.Unmarshal(raw, &info) == nil && info.Ended != nil
	})
	r, err := readRecording(context.Background(), rec)
	if err != nil || len(r.turns()) == 0 || len(r.warnings) != 0 {
		t.Errorf("%v, warnings %q", err, r.warnings)
	}
}
