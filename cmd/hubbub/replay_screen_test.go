package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplayScreen plays a recording in a terminal: it pauses, seeks, changes
// its speed; a name that is given there is kept, shown the next time, and in
// what is exported.
func TestReplayScreen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "monday")
	p := start(t, "live", "--input", demoFile, "--pace", "fast", "--record", dir)
	if code := p.exit(); code != exitOK {
		t.Fatalf("recording exits with %d", code)
	}
	x := inTerminal(t, 120, 34, "replay", dir, "--speed", "2")
	x.shows("monday", "SPEAKER_00", `\b2x\b`)
	x.tmux("send-keys", ">")
	x.shows(`\b4x\b`)
	x.tmux("send-keys", "p")
	x.shows("PAUSED")
	poll(t, "the end of the recording", func() bool {
		x.tmux("send-keys", ".")
		return strings.Contains(x.tmux("capture-pane", "-p"), "1:18 / 1:18")
	})
	x.tmux("send-keys", ",", "p")
	x.shows(`1:08 / 1:18|1:09 / 1:18`, "PAUSED|SPEAKER_03")
	x.tmux("send-keys", "r", "Enter")
	x.shows("name of SPEAKER_00")
	x.tmux("send-keys", "-l", "Añna <b>")
	x.tmux("send-keys", "Enter")
	poll(t, "the name in the recording", func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, notesFile))
		return strings.Contains(string(raw), "Añna")
	})
	x.shows("Añna <b>")
	x.tmux("send-keys", "e")
	page := filepath.Join(dir, "export", "timeline.html")
	poll(t, "the exported page", func() bool { return exists(page) })
	x.shows("exported")
	x.tmux("send-keys", "q")
	if code := x.left(); code != "0" {
		t.Errorf("q leaves with %s, want 0", code)
	}
	x.shows("Añna <b> .*%")
	raw, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(raw), "Añna &lt;b&gt;") || strings.Contains(string(raw), "Añna <b>") {
		t.Errorf("the name is not in the page as it should be: %v", err)
	}

	again := inTerminal(t, 80, 24, "replay", dir, "--speed", "8")
	again.shows("Añna <b>")
	again.tmux("send-keys", "C-c")
	if code := again.left(); code != "130" {
		t.Errorf("ctrl+c leaves with %s, want 130", code)
	}
}
