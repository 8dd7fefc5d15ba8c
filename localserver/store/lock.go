package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// folderLock keeps a folder for one process. The system gives it back when the
// process ends, however it ends.
type folderLock struct{ file *flock.Flock }

// lockFolder makes dir if needed, readable by its owner only, and locks it.
func lockFolder(dir string) (*folderLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &hinted{fmt.Errorf("data folder %s cannot be made: %w", dir, unwrapPath(err)),
			"Choose a folder that you may write to."}
	}
	file := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	switch got, err := file.TryLock(); {
	case err != nil:
		return nil, &hinted{fmt.Errorf("data folder %s cannot be locked: %w", dir, unwrapPath(err)),
			"Choose a folder that you may write to, on a disk of this machine."}
	case !got:
		return nil, &hinted{fmt.Errorf("data folder %s is in use by another hubbub", dir),
			"Stop the other one, or give this one a folder of its own."}
	}
	return &folderLock{file}, nil
}

func (l *folderLock) release() error { return l.file.Unlock() }

// unwrapPath drops the path that a file error repeats.
func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// hinted is an error that also says what to do next.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }
func (h *hinted) Hint() string  { return h.hint }
