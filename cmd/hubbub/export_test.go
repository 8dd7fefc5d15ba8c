package main

import (
	"os"
	"path/filepath"
	"testing"

	"hubbub/protocol/testkit"
)

// TestRefineInterrupted interrupts the second pass of a recording, whose progress and
// remaining time a terminal shows: nothing is written, the recording is unchanged, and
// the same command succeeds later.
func TestRefineInterrupted(t *testing.T) {
	t.Parallel()
	skipShort(t)
	dir, out := filepath.Join(t.TempDir(), "monday"), filepath.Join(t.TempDir(), "refined")
	start(t, "live", "--input", talkFile(t, 4), "--pace", "fast", "--record", dir).ends(exitOK)
	files := func() (all string) {
		for _, f := range testkit.Files(t, dir, "*[^v]") { // without the audio
			all += f + "\n" + string(testkit.Must(os.ReadFile(f))(t))
		}
		return all
	}
	audio := filepath.Join(dir, "audio.wav")
	short := testkit.Must(os.ReadFile(audio))(t)
	writeSilence(t, audio, 5*60*60)
	before := files()

	x := inTerminal(t, 100, 20, "export", dir, "--refine", "--to", out+"/")
	x.Shows(`of 5h0m0s, \d+ %, \S+ left`)
	x.Keys("C-c")
	x.ends(exitInterrupted)
	if exists(out) {
		t.Error("an interrupted export left a folder")
	}
	testkit.Equal(t, files(), before, "the recording")

	testkit.NoError(t, os.WriteFile(audio, short, 0o600))
	p := start(t, "export", dir, "--refine", "--to", out+"/")
	p.line("named.rttm")
	p.ends(exitOK)
	testkit.Equal(t, exists(filepath.Join(out, "timeline.html")), true, "the page of the second attempt")
}
