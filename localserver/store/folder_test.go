package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/protocol/hint"
)

func TestFolderIsLocked(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	_, err := Open(context.Background(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use") || hint.Of(err) == "" {
		t.Fatalf("second store on the same folder: %v", err)
	}
	if err := first.Create(context.Background(), record("s1"), "secret"); err != nil {
		t.Fatalf("the first store no longer works: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	if _, err := second.Get(context.Background(), "s1"); err != nil {
		t.Fatalf("after reopening: %v", err)
	}
}

func TestInvalidFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(context.Background(), Options{Dir: filepath.Join(file, "below")})
	if hint.Of(err) == "" {
		t.Fatalf("no hint: %v", err)
	}
}

func TestMemoryStoreLeavesNothing(t *testing.T) {
	s, err := Open(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.scratch); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.scratch); !os.IsNotExist(err) {
		t.Fatalf("the folder is still there: %v", err)
	}
	if err := s.Ping(context.Background()); err == nil {
		t.Fatal("a closed store answers")
	}
}
