package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/cmd/hubbub/internal/recording"
)

// TestReplayScreen plays a recording in a terminal: it pauses, seeks, changes
// its speed; a name that is given there is kept, shown the next time, and in
// what is exported.
func TestReplayScreen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "monday")
	p := start(t, "live", "--input", demoFile(t), "--pace", "fast", "--record", dir)
	if code := p.exit(); code != exitOK {
		t.Fatalf("recording exits with %d", code)
	}
	x := inTerminal(t, 120, 34, "replay", dir, "--speed", "2")
	x.shows("monday", "SPEAKER_00", `\b2x\b`)
	x.keys(">")
	x.shows(`\b4x\b`)
	x.keys("Space")
	x.shows("PAUSED", "space pause")
	x.keys("Space")
	poll(t, "a replay that plays again", 20*time.Millisecond, func() bool { return !strings.Contains(x.screen(), "PAUSED") })
	x.keys("p")
	x.shows("PAUSED")
	poll(t, "the end of the recording", 20*time.Millisecond, func() bool {
		x.keys(".")
		return strings.Contains(x.screen(), "1:18 / 1:18")
	})
	x.keys(",", "p")
	x.shows(`1:08 / 1:18|1:09 / 1:18`, "PAUSED|SPEAKER_03")
	x.keys("r", "1") // Enter would take who speaks, and the replay goes on
	x.shows("name of SPEAKER_00")
	x.types("Añna <b>")
	x.keys("Enter")
	poll(t, "the name in the recording", 20*time.Millisecond, func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, recording.NotesFile))
		return strings.Contains(string(raw), "Añna")
	})
	x.shows("Añna <b>")
	x.keys("e")
	page := filepath.Join(dir, "export", "timeline.html")
	poll(t, "the exported page", 20*time.Millisecond, func() bool { return exists(page) })
	x.shows("exported")
	x.keys("q")
	if code := x.exitCode(); code != "0" {
		t.Errorf("q exits with %s, want 0", code)
	}
	x.shows("Añna <b> .*%")
	raw, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(raw), "Añna &lt;b&gt;") || strings.Contains(string(raw), "Añna <b>") {
		t.Errorf("the name is not in the page as it should be: %v", err)
	}

	again := inTerminal(t, 80, 24, "replay", dir, "--speed", "8")
	again.shows("Añna <b>")
	again.keys("C-c")
	if code := again.exitCode(); code != "130" {
		t.Errorf("ctrl+c exits with %s, want 130", code)
	}
}

// TestExportAsks asks on a terminal before it replaces a file, and accepts
// only yes for yes.
func TestExportAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "turns.csv")
	for name, text := range map[string]string{recording.TurnsFile: "SPEAKER a 1 0.5 1.0 <NA> <NA> A <NA> <NA>\n", "turns.csv": "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ answer, code, want string }{{"n Enter", "1", "mine"}, {"Enter", "1", "mine"}, {"C-c", "130", "mine"}, {"y Enter", "0", "start,end"}} {
		x := inTerminal(t, 120, 20, "export", dir, "--format", "csv")
		x.shows(`turns.csv exists. Overwrite\? \[y/N\]`)
		x.keys(strings.Fields(c.answer)...)
		if code := x.exitCode(); code != c.code {
			t.Errorf("answer %q: exit code %s, want %s", c.answer, code, c.code)
		}
		if raw, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(raw), c.want) {
			t.Errorf("answer %q leaves %.20q, %v", c.answer, raw, err)
		}
	}
}
