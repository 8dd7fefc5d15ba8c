package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// SmallDisk mounts a file system of a size, such as 64m, and returns its folder. Where
// that is not permitted, the test is skipped.
func SmallDisk(t *testing.T, size string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts mount")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return dir
}

// FillDisk writes a file that fills the disk of a folder, and returns its path.
func FillDisk(t *testing.T, dir string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "filler"))
	NoError(t, err)
	for block := make([]byte, 4096); err == nil; {
		_, err = file.Write(block)
	}
	_ = file.Close() // the disk is full
	return file.Name()
}
