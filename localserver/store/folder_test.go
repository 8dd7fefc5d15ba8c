package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

func TestInvalidFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testkit.NoError(t, os.WriteFile(file, nil, 0o600))
	dir := t.TempDir() // with a file in the place of a stream
	testkit.NoError(t, os.MkdirAll(datafolder.Streams(dir), 0o700))
	testkit.NoError(t, os.WriteFile(filepath.Join(datafolder.Streams(dir), "EVENTS"), nil, 0o600))
	for _, dir := range []string{filepath.Join(file, "below"), dir} {
		if _, err := Open(context.Background(), Options{Dir: dir}); err == nil || hint.Of(err) == "" {
			t.Errorf("no hint: %v", err)
		}
	}
}

func TestMemoryStoreLeavesNothing(t *testing.T) {
	s := testkit.Must(Open(context.Background(), Options{}))(t)
	testkit.Must(os.Stat(s.folder))(t)
	testkit.NoError(t, s.Close())
	if _, err := os.Stat(s.folder); !os.IsNotExist(err) {
		t.Fatalf("the folder is still there: %v", err)
	}
	if err := s.Ping(context.Background()); err == nil {
		t.Fatal("a closed store responds")
	}
}

// A store in memory removes the folders of killed processes, and no others.
func TestScratchOfKilledProcessesIsRemoved(t *testing.T) {
	temp := filepath.Join(t.TempDir(), "[1]") // a pattern that does not match itself
	testkit.NoError(t, os.Mkdir(temp, 0o700))
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp) // on Windows
	running := open(t, "")
	killed, strange := filepath.Join(temp, datafolder.ScratchPrefix+"killed"), filepath.Join(temp, datafolder.ScratchPrefix+"strange")
	for _, dir := range []string{filepath.Join(killed, "jetstream"), strange} {
		testkit.NoError(t, os.MkdirAll(dir, 0o700))
	}
	testkit.NoError(t, os.WriteFile(filepath.Join(killed, datafolder.LockFile), nil, 0o600))
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{killed, running.folder} {
		testkit.NoError(t, os.Chtimes(filepath.Join(dir, datafolder.LockFile), old, old))
	}
	open(t, "")
	for dir, want := range map[string]bool{killed: false, strange: true, running.folder: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
