//go:build unix

package datafolder

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"hubbub/protocol/testkit"
)

// No NATS server may start on streams that are not protected because there are too many open files.
func TestGuardWithTooManyOpenFiles(t *testing.T) {
	dir := t.TempDir()
	stream := filepath.Join(Streams(dir), "A")
	testkit.NoError(t, os.MkdirAll(stream, 0o700))
	testkit.NoError(t, os.WriteFile(filepath.Join(stream, metaFile), nil, 0o600))
	var limit syscall.Rlimit
	testkit.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	testkit.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err := NewGuard(dir)
	testkit.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
}
