package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol/testkit"
)

// TestReplayScreen plays a recording in a terminal: it pauses, seeks, changes
// its speed; a name that is given there is kept, shown the next time, and in
// what is exported.
func TestReplayScreen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "monday")
	start(t, "live", "--input", demoFile(t), "--pace", "fast", "--record", dir).ends(exitOK)
	x := inTerminal(t, 120, 34, "replay", dir, "--speed", "2")
	x.Shows("monday", "SPEAKER_00", `\b2x\b`)
	x.Keys(">")
	x.Shows(`\b4x\b`)
	x.Keys("Space")
	x.Shows("PAUSED", "space pause")
	x.Keys("Space")
	testkit.Eventually(t, "a replay that plays again", func() bool { return !strings.Contains(x.Screen(), "PAUSED") })
	x.Keys("p")
	x.Shows("PAUSED")
	testkit.Eventually(t, "the end of the recording", func() bool {
		x.Keys(".")
		return strings.Contains(x.Screen(), "1:18 / 1:18")
	})
	x.Keys(",", "p")
	x.Shows(`1:08 / 1:18|1:09 / 1:18`, "PAUSED|SPEAKER_03")
	x.Keys("r", "1") // Enter would take who speaks, and the replay goes on
	x.Shows("name of SPEAKER_00")
	x.Types("Añna <b>")
	x.Keys("Enter")
	testkit.Eventually(t, "the name in the recording", func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, recording.NotesFile))
		return strings.Contains(string(raw), "Añna")
	})
	x.Shows("Añna <b>")
	x.Keys("e")
	page := filepath.Join(dir, "export", "timeline.html")
	testkit.Eventually(t, "the exported page", func() bool { return exists(page) })
	x.Shows("exported")
	x.Keys("q")
	x.ends(exitOK)
	x.Shows("Añna <b> .*%")
	x.sane()
	raw, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(raw), "Añna &lt;b&gt;") || strings.Contains(string(raw), "Añna <b>") {
		t.Errorf("the name is not in the page as it should be: %v", err)
	}

	again := inTerminal(t, 80, 24, "replay", dir, "--speed", "8")
	again.Shows("Añna <b>")
	again.Keys("C-c")
	again.ends(exitInterrupted)

	// At the end of the recording names can still be given in words, until nothing more can be typed.
	spoken := inTerminal(t, 80, 40, "replay", dir, "--accessible", "--speed", "1000")
	spoken.Shows("^Finished after 1:18")
	spoken.Keys("name 2 Ben", "Enter")
	spoken.Shows("is now Ben")
	spoken.Keys("C-d")
	spoken.ends(exitOK)
	spoken.Shows("^Ben: .* percent")
}

// TestExportAsks asks on a terminal before it replaces a file, and accepts
// only yes for yes. The name of the file cannot control the terminal.
func TestExportAsks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a\x1b[2Jb")
	testkit.NoError(t, os.Mkdir(dir, 0o700))
	page := filepath.Join(dir, "turns.csv")
	for name, text := range map[string]string{recording.TurnsFile: "SPEAKER a 1 0.5 1.0 <NA> <NA> A <NA> <NA>\n", "turns.csv": "mine"} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, c := range []struct {
		answer string
		code   int
		want   string
	}{{"n Enter", exitFailed, "mine"}, {"Enter", exitFailed, "mine"}, {"C-c", exitInterrupted, "mine"}, {"y Enter", exitOK, "start,end"}} {
		x := inTerminal(t, 120, 20, "export", dir, "--format", "csv")
		x.Shows(`ab/turns.csv exists. Overwrite\? \[y/N\]`)
		x.Keys(strings.Fields(c.answer)...)
		x.ends(c.code)
		if raw, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(raw), c.want) {
			t.Errorf("answer %q leaves %.20q, %v", c.answer, raw, err)
		}
	}
}
