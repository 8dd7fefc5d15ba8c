package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hubbub/localserver/store"
	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/testkit"
)

// A stopped server's data folder is checked and emptied; the exit code tells
// whether something is damaged.
func TestStoreCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := testkit.Must(store.Open(context.Background(), store.Options{Dir: dir}))(t)
	w := testkit.Must(s.CreateMedia(context.Background(), "a", "x", time.Now))(t)
	testkit.Must(w.Write(make([]byte, 1000)))(t)
	testkit.Must(w.Commit(nil))(t)
	start(t, "store", "check", "--data", dir).ends(exitFailed, "in use")
	testkit.NoError(t, s.Close())
	check := func(want int) (damaged int64) {
		t.Helper()
		p := start(t, "store", "check", "--data", dir, "--output", "json")
		p.ends(want)
		var reports []datafolder.Report
		if err := json.Unmarshal([]byte(p.output()), &reports); err != nil || len(reports) == 0 {
			t.Fatalf("%v: %s", err, p.stdout.String())
		}
		for _, r := range reports {
			damaged += r.Damaged
		}
		return damaged
	}
	testkit.Equal(t, check(exitOK), 0, "damaged bytes in an intact store")
	blocks := testkit.Files(t, dir, "jetstream/jetstream/$G/streams/MEDIA/msgs/*.blk")
	if len(blocks) != 1 {
		t.Fatalf("%q", blocks)
	}
	raw := testkit.Must(os.ReadFile(blocks[0]))(t)
	raw[len(raw)/2]++
	testkit.NoError(t, os.WriteFile(blocks[0], raw, 0o600))
	if n := check(exitFailed); n == 0 {
		t.Error("the damage is not found")
	}
	purge := start(t, "store", "purge", "--data", dir)
	purge.line(`^[1-9]\d* bytes freed$`)
	purge.ends(exitOK)
	testkit.Equal(t, check(exitOK), 0, "damaged bytes after the purge")
	for _, args := range [][]string{{"store"}, {"store", "check"}, {"store", "purge"}} {
		start(t, args...).ends(exitUsage)
	}
	start(t, "store", "purge", "--data", t.TempDir()).ends(exitFailed)
}

// The data folder of a running server is backed up and restored.
func TestStoreBackup(t *testing.T) {
	t.Parallel()
	data, parent := t.TempDir(), t.TempDir()
	file, to := filepath.Join(parent, "monday.zip"), filepath.Join(parent, "new")
	serve(t, "--api-key", "k", "--data", data)
	backup := start(t, "store", "backup", file, "--data", data)
	backup.line("bytes written to")
	backup.ends(exitOK)
	testkit.HasMode(t, file, 0o600)
	start(t, "store", "backup", file, "--data", data).ends(exitFailed, "exists already")
	start(t, "store", "restore", file, "--data", to).ends(exitOK)
	for _, same := range []string{"tls.pem", "ca.pem"} {
		one, err := os.ReadFile(filepath.Join(data, same))
		two, err2 := os.ReadFile(filepath.Join(to, same))
		if string(one) != string(two) || err != nil || err2 != nil {
			t.Errorf("%s differs: %v %v", same, err, err2)
		}
	}
	start(t, "store", "restore", file, "--data", to).ends(exitFailed, "not empty")
	testkit.NoError(t, os.Truncate(file, 1000))
	start(t, "store", "restore", file, "--data", to+"2").ends(exitFailed, "not a complete backup")
	testkit.Equal(t, len(testkit.Must(os.ReadDir(parent))(t)), 2, "files are left")
	for _, args := range [][]string{{"store", "backup"}, {"store", "backup", "x"}, {"store", "restore", "x"}} {
		start(t, args...).ends(exitUsage)
	}
}
