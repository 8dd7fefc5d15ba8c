package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/store"
	"hubbub/localserver/store/datafolder"
)

// A stopped server's data folder is checked and emptied; the exit code tells
// whether something is damaged.
func TestStoreCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.CreateMedia(context.Background(), "a", "x", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(nil); err != nil {
		t.Fatal(err)
	}
	busy := start(t, "store", "check", "--data", dir)
	if code := busy.exit(); code != exitFailed || !strings.Contains(busy.stderr.String(), "in use") {
		t.Errorf("beside a server: exit %d", code)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(want int) (damaged int64) {
		t.Helper()
		p := start(t, "store", "check", "--data", dir, "--output", "json")
		if code := p.exit(); code != want {
			t.Errorf("check: exit %d", code)
		}
		var reports []datafolder.Report
		if err := json.Unmarshal(p.stdout.Bytes(), &reports); err != nil || len(reports) == 0 {
			t.Fatalf("%v: %s", err, p.stdout.String())
		}
		for _, r := range reports {
			damaged += r.Damaged
		}
		return damaged
	}
	if n := check(exitOK); n != 0 {
		t.Errorf("%d damaged bytes in an intact store", n)
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "jetstream", "$G", "streams", "MEDIA", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%q %v", blocks, err)
	}
	raw, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2]++
	if err := os.WriteFile(blocks[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := check(exitFailed); n == 0 {
		t.Error("the damage is not found")
	}
	purge := start(t, "store", "purge", "--data", dir)
	if got := purge.line("bytes freed$"); purge.exit() != exitOK || strings.HasPrefix(got, "0 ") {
		t.Errorf("purge: %s", got)
	}
	if n := check(exitOK); n != 0 {
		t.Errorf("%d damaged bytes after the purge", n)
	}
	for _, args := range [][]string{{"store"}, {"store", "check"}, {"store", "purge"}} {
		if code := start(t, args...).exit(); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
	if code := start(t, "store", "purge", "--data", t.TempDir()).exit(); code != exitFailed {
		t.Errorf("purge of an empty folder: exit %d", code)
	}
}

// The data folder of a running server is backed up and restored.
func TestStoreBackup(t *testing.T) {
	t.Parallel()
	data, parent := t.TempDir(), t.TempDir()
	file, to := filepath.Join(parent, "monday.zip"), filepath.Join(parent, "new")
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--api-key", "k", "--data", data)
	server.line(`^ready `)
	backup := start(t, "store", "backup", file, "--data", data)
	if got := backup.line("bytes written to"); backup.exit() != exitOK {
		t.Errorf("backup: %s %s", got, backup.errors())
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	again := start(t, "store", "backup", file, "--data", data)
	if code := again.exit(); code != exitFailed || !strings.Contains(again.errors(), "exists already") {
		t.Errorf("over a file: exit %d, %s", code, again.errors())
	}
	restore := start(t, "store", "restore", file, "--data", to)
	if code := restore.exit(); code != exitOK {
		t.Errorf("restore: exit %d, %s", code, restore.errors())
	}
	for _, same := range []string{"tls.pem", "ca.pem"} {
		one, err := os.ReadFile(filepath.Join(data, same))
		two, err2 := os.ReadFile(filepath.Join(to, same))
		if string(one) != string(two) || err != nil || err2 != nil {
			t.Errorf("%s differs: %v %v", same, err, err2)
		}
	}
	full := start(t, "store", "restore", file, "--data", to)
	if code := full.exit(); code != exitFailed || !strings.Contains(full.errors(), "not empty") {
		t.Errorf("into a folder with a store: exit %d, %s", code, full.errors())
	}
	if err := os.Truncate(file, 1000); err != nil {
		t.Fatal(err)
	}
	cut := start(t, "store", "restore", file, "--data", to+"2")
	if code := cut.exit(); code != exitFailed || !strings.Contains(cut.errors(), "not a complete backup") {
		t.Errorf("a part of a backup: exit %d, %s", code, cut.errors())
	}
	if left, err := os.ReadDir(parent); len(left) != 2 || err != nil {
		t.Errorf("left behind: %v", left)
	}
	for _, args := range [][]string{{"store", "backup"}, {"store", "backup", "x"}, {"store", "restore", "x"}} {
		if code := start(t, args...).exit(); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
