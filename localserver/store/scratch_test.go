package store

import (
	"hubbub/localserver/store/datafolder"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A store in memory removes the folders of killed processes, and no others.
func TestScratchOfKilledProcessesIsRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	running := open(t, "")
	killed, strange := filepath.Join(temp, datafolder.ScratchPrefix+"killed"), filepath.Join(temp, datafolder.ScratchPrefix+"strange")
	for _, dir := range []string{filepath.Join(killed, "jetstream"), strange} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(killed, datafolder.LockFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{killed, running.scratch} {
		if err := os.Chtimes(filepath.Join(dir, datafolder.LockFile), old, old); err != nil {
			t.Fatal(err)
		}
	}
	open(t, "")
	for dir, want := range map[string]bool{killed: false, strange: true, running.scratch: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
