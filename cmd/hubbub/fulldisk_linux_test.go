package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol/testkit"
)

// TestFullDisk records onto a disk that becomes full: that is reported at once,
// the session continues, and its end gives that one reason.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.SmallDisk(t, "200k"), "rec") // 5 s of audio and the other files
	p := start(t, "live", "--input", talkFile(t, 14), "--record", dir)
	const text = "the disk is full"
	p.says(text, 1)
	p.line(`^00:00:1\d.*SPEAKER_0`) // turns of later
	p.ends(1)
	lines := strings.Split(strings.TrimSpace(withoutWait(p.errors())), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], text) || lines[1] != lines[0] || !strings.HasPrefix(lines[2], "Free disk space") {
		t.Errorf("standard error:\n%s", p.errors())
	}
	if s := recordedSeconds(t, filepath.Join(dir, "audio.wav")); s < 3 || s > 7 {
		t.Errorf("%.1f s of audio are readable", s)
	}
}

// TestVoicesExportOnAFullDisk: an export that fails leaves no file in the way of the
// next one.
func TestVoicesExportOnAFullDisk(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	file := filepath.Join(testkit.SmallDisk(t, "8k"), "rec")
	full := file + ".full"
	testkit.NoError(t, os.WriteFile(full, make([]byte, 8<<10), 0o600))
	if _, stderr := inProcess(t, exitFailed, "", "voices", "export", file); !strings.Contains(stderr, "no space") || exists(file) {
		t.Errorf("%q", stderr)
	}
	testkit.NoError(t, os.Remove(full))
	inProcess(t, exitOK, "", "voices", "export", file)
}

// TestReportThatIsMounted: a container can mount a single file, which cannot be replaced. It is written to.
func TestReportThatIsMounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	testkit.NoError(t, os.WriteFile(path, []byte("of an earlier run"), 0o600))
	if err := syscall.Mount(path, path, "", syscall.MS_BIND, ""); err != nil {
		t.Skip(err)
	}
	defer syscall.Unmount(path, 0)
	testkit.NoError(t, writeReport(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }))
	testkit.Equal(t, string(testkit.Must(os.ReadFile(path))(t)), "new", "the file")
}
