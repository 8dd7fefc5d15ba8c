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

// TestExportAsks asks on a terminal before it writes over anything, and takes
// only yes for yes.
func TestExportAsks(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "turns.csv")
	for name, text := range map[string]string{turnsFile: "SPEAKER a 1 0.5 1.0 <NA> <NA> A <NA> <NA>\n", "turns.csv": "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ answer, code, want string }{{"n", "1", "mine"}, {"", "1", "mine"}, {"y", "0", "start,end"}} {
		x := inTerminal(t, 120, 20, "export", dir, "--format", "csv")
		x.shows(`turns.csv exists. Write over\? \[y/N\]`)
		x.tmux("send-keys", c.answer, "Enter")
		if code := x.left(); code != c.code {
			t.Errorf("answer %q: exit code %s, want %s", c.answer, code, c.code)
		}
		if raw, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(raw), c.want) {
			t.Errorf("answer %q leaves %.20q, %v", c.answer, raw, err)
		}
	}
}
