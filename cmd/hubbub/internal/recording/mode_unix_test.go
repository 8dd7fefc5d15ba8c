//go:build unix

package recording

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol/atomicfile"
	"hubbub/protocol/export"
	"hubbub/protocol/testkit"
)

// TestExportIntoPipe: a pipe, like a device, is written to, and a link stays one.
func TestExportIntoPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	testkit.NoError(t, errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, nil, 0o600), os.Symlink("file", link)))
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // does not wait for a writer
	testkit.NoError(t, err)
	defer reader.Close()
	d := Content{}.Document(dir, "auto")
	for _, path := range []string{pipe, link} {
		testkit.NoError(t, WriteExport(path, export.CSV, d, true))
	}
	if st, err := os.Lstat(pipe); err != nil || st.Mode().IsRegular() {
		t.Fatalf("the pipe was replaced: %v, %v", st, err)
	}
	if to, err := os.Readlink(link); err != nil || to != "file" {
		t.Errorf("the link was replaced: %q, %v", to, err)
	}
	want, _ := os.ReadFile(file)
	got := make([]byte, len(want)+1)
	if n, err := reader.Read(got); err != nil || len(want) == 0 || string(got[:n]) != string(want) {
		t.Errorf("the pipe got %q, the file %q, %v", got, want, err)
	}
}

// TestPipeAsFile: a pipe in the place of a file is not waited for. Only the audio can be left out: without the
// arrivals, turns after a gap would be at other times.
func TestPipeAsFile(t *testing.T) {
	for _, name := range []string{EventsFile, ArrivalsFile, AudioFile} {
		dir := tape(t).Dir
		_ = os.Remove(filepath.Join(dir, name))
		testkit.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
		r, err := Read(t.Context(), dir)
		if name != AudioFile && err == nil || name == AudioFile && (err != nil || r.Audio != "" || !strings.Contains(strings.Join(r.Warnings, "\n"), "audio.wav is not a regular file")) {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}

// TestFileModes: the umask of the user decides who may read what is saved.
func TestFileModes(t *testing.T) {
	for _, umask := range []int{0o077, 0o027, 0o002} {
		dir := t.TempDir()
		old := syscall.Umask(umask)
		err := atomicfile.WriteFile(filepath.Join(dir, NotesFile), []byte("{}\n"), 0o666)
		exported, exportErr := Content{}.Export(dir)
		syscall.Umask(old)
		if err != nil || exportErr != nil {
			t.Fatal(err, exportErr, exported)
		}
		for _, name := range []string{NotesFile, filepath.Join("export", export.RTTM.File())} {
			info := testkit.Must(os.Stat(filepath.Join(dir, name)))(t)
			testkit.Equal(t, info.Mode().Perm(), os.FileMode(0o666&^umask), "with umask", umask, name, "has mode")
		}
	}
}
