package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

func content(t *testing.T, path string) string {
	t.Helper()
	raw := testkit.Must(os.ReadFile(path))(t)
	return string(raw)
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("n", 250)) // as long as a name can be
	for _, text := range []string{"first", "second"} {
		if err := WriteFile(path, []byte(text), 0o600); err != nil || content(t, path) != text {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := CreateFile(path, []byte("third"), 0o600); !errors.Is(err, fs.ErrExist) || content(t, path) != "second" {
		t.Errorf("a file that exists: %v", err)
	}
	if err := CreateFile(path+"2", []byte("new"), 0o600); err != nil || content(t, path+"2") != "new" {
		t.Errorf("a new file: %v", err)
	}
	testkit.HasMode(t, path, 0o600)
}

// TestWriteOverAnOpenFile: a reader that ends soon does not matter, on Windows either.
func TestWriteOverAnOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	testkit.NoError(t, WriteFile(path, nil, 0o600))
	reader := testkit.Must(os.Open(path))(t)
	defer reader.Close()
	pause = func(time.Duration) { _ = reader.Close() }
	defer func() { pause = time.Sleep }()
	if err := WriteFile(path, []byte("new"), 0o600); err != nil || content(t, path) != "new" {
		t.Error(err)
	}
}

// TestFailedWrite leaves the old file, and nothing else.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	testkit.NoError(t, WriteFile(path, []byte("old"), 0o600))
	full := errors.New("the disk is full")
	if err := Write(path, 0o600, true, func(w io.Writer) error { _, _ = w.Write([]byte("ne")); return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := Check(dir); err != nil {
		t.Error(err)
	}
	if err := Check(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || content(t, path) != "old" {
		t.Errorf("%v %v", entries, err)
	}
}

// TestErrorsNameTheFile: not the temporary one, which the caller does not know.
func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	closed := func(w io.Writer) error { return w.(namedWriter).temp.Close() }
	described := func(w io.Writer) error {
		_, err := fmt.Fprint(w, "text", closed(w))
		return fmt.Errorf("writing the text: %w", err)
	}
	for name, err := range map[string]error{
		"no folder":              Write(filepath.Join(dir, "none", "file"), 0o600, true, nil),
		"a failed write":         Write(filepath.Join(dir, "file"), 0o600, true, closed),
		"one that is described":  Write(filepath.Join(dir, "file"), 0o600, true, described),
		"a folder in its place":  WriteFile(dir, nil, 0o600),
		"a file in its place":    CreateFile(dir, nil, 0o600),
		"a check without folder": Check(filepath.Join(dir, "none")),
	} {
		if err == nil || strings.Contains(err.Error(), TempPrefix) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
