package diskspace

import (
	"path/filepath"
	"testing"
)

func TestOf(t *testing.T) {
	dir := t.TempDir()
	if free, total, err := Of(dir); err != nil || free <= 0 || total < free {
		t.Errorf("%d of %d bytes, %v", free, total, err)
	}
	if _, _, err := Of(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that does not exist")
	}
}
