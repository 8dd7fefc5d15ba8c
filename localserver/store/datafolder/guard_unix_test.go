//go:build unix

package datafolder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol/hint"
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

// A folder in which no second names can be looked for is one that cannot be used.
func TestAccessToTheFolderOfStreams(t *testing.T) {
	dir := t.TempDir()
	account := filepath.Dir(Streams(dir))
	testkit.NoError(t, os.MkdirAll(filepath.Dir(account), 0o700))
	testkit.NoError(t, os.WriteFile(account, nil, 0o600)) // root may use any folder
	if err := CheckAccess(dir); err == nil || !strings.Contains(err.Error(), "the store cannot be used") || hint.Of(err) == "" {
		t.Error(err)
	}
}
