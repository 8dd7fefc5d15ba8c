package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol/testkit"
)

func panicWhen(file string) {
	for !exists(file) {
		time.Sleep(10 * time.Millisecond)
	}
	panic("a defect made for a test")
}

// TestPanic lets goroutines panic while the screen is open: the terminal is restored, the
// user is told, a report is written, and the recording is readable. If the panic is caught,
// the session is ended in order, too. Package session tests each kind of session.
func TestPanic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		place, where string
		code         int
	}{
		{"elsewhere", "panicWhen", 2},
		{"display", "fullScreen", exitFailed},
		{"send", "Live).sendChunks", exitFailed},
		{"receive", "Live).receive", exitFailed},
		{"record", "Writer).writeAudio", exitFailed},
	} {
		t.Run(c.place, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			trigger, rec := filepath.Join(dir, "now"), filepath.Join(dir, "rec")
			x := inTerminalWith(t, 100, 30, []string{panicEnv + "=" + c.place + ":" + trigger, "XDG_CACHE_HOME=" + dir, "HOME=" + dir}, "live", "--input", talkFile(t, 0), "--record", rec)
			x.Shows("connected")
			testkit.Eventually(t, "recorded audio", func() bool {
				st, err := os.Stat(filepath.Join(rec, recording.AudioFile))
				return err == nil && st.Size() > 1000
			})
			testkit.NoError(t, os.WriteFile(trigger, nil, 0o600))
			if c.place == "record" {
				// The session continues without a recording, and says so.
				x.Shows(`REC stopped`)
				x.Keys("q")
			}
			x.Shows("panic: a defect made for a test", "The report is")
			x.sane()
			x.ends(c.code)
			var reports []string
			for _, pattern := range []string{"hubbub/crash-*.txt", "Library/Caches/hubbub/crash-*.txt"} {
				reports = append(reports, testkit.Files(t, dir, pattern)...)
			}
			if len(reports) != 1 {
				t.Fatalf("%d reports", len(reports))
			}
			text, err := os.ReadFile(reports[0])
			if err != nil || !strings.Contains(string(text), "a defect made for a test") || !strings.Contains(string(text), c.where) {
				t.Errorf("the report does not contain the panic: %v\n%.2000s", err, text)
			}
			r, err := recording.Read(t.Context(), rec)
			if err != nil || r.Length <= 0 {
				t.Fatalf("the recording cannot be read: %v", err)
			}
			if c.code == exitFailed && r.Info.Ended == nil {
				t.Error("the session was not ended in order")
			}
		})
	}
}

// TestKilledLines kills the program with SIGKILL: the terminal is restored, and without a screen, which TestPanic has, what
// stands on it stays there.
func TestKilledLines(t *testing.T) {
	t.Parallel()
	x := inTerminal(t, 80, 24, "live", "--input", talkFile(t, 0), "--accessible")
	x.Keys("bookmark", "Enter")
	x.Shows("^Bookmark at ") // it reads keys
	x.kill("-KILL")
	x.sane()
	x.Shows(`^Listening to [^\0]*^Bookmark at [^\0]*^typed`)
}

// kill sends a signal to the program in the terminal, which the shell there
// has started.
func (x *terminal) kill(signal string) {
	x.t.Helper()
	if _, err := exec.LookPath("pkill"); err != nil {
		x.t.Skip("pkill is not installed")
	}
	shell := strings.TrimSpace(x.Tmux("display-message", "-p", "#{pane_pid}"))
	if out, err := exec.Command("pkill", signal, "-P", shell).CombinedOutput(); err != nil {
		x.t.Fatalf("pkill: %v\n%s", err, out)
	}
}

// TestTerminalClosed closes the terminal during a session: the session is ended
// in order, and the recording says so.
func TestTerminalClosed(t *testing.T) {
	t.Parallel()
	rec := filepath.Join(t.TempDir(), "rec")
	x := inTerminal(t, 80, 24, "live", "--input", talkFile(t, 0), "--record", rec)
	x.Shows("SPEAKER_00")
	x.Tmux("kill-server")
	var r *recording.Recording
	testkit.Eventually(t, "a recording that was ended in order", func() bool {
		read, err := recording.Read(t.Context(), rec)
		r = read
		return err == nil && r.Info.Ended != nil
	})
	if len(r.Turns()) == 0 || len(r.Warnings) != 0 {
		t.Errorf("%d turns, warnings %q", len(r.Turns()), r.Warnings)
	}
}
