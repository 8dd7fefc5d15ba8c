package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol/evaluation"
	"hubbub/protocol/testkit"
)

// TestAgainst: the differences to an earlier run are those of the recordings that
// both have.
func TestAgainst(t *testing.T) {
	dir := makeSet(t)
	earlier := tables(t, "--dir", dir, "--sets", "real-dev")
	now := earlier[0].Sets[0].EachRecording[0]
	now.DER -= 0.02
	other := figures{Name: "other", Result: evaluation.Result{DER: 0.5}}
	earlier[0].Sets[0].EachRecording = []figures{other, now}
	raw := testkit.Must(json.Marshal(earlier))(t)
	path := filepath.Join(t.TempDir(), "earlier.json")
	testkit.NoError(t, os.WriteFile(path, raw, 0o600))
	text := testkit.Must(eval(t, "--dir", dir, "--sets", "real-dev", "--against", path))(t)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(fields) < 5 || fields[0] != "real-dev" || fields[1] != "1" || fields[2] != "+2.00" {
		t.Errorf("%q, want one recording with 2 points of DER more", lines[len(lines)-1])
	}
	if _, err := eval(t, "--dir", dir, "--against", "none.json"); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("a file that does not exist: %v", err)
	}
}
