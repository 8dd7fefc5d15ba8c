package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hubbub/protocol/hint"

	"github.com/gofrs/flock"
)

// folderLock reserves a data folder for one process. The operating system
// releases it when the process ends, however it ends.
type folderLock struct{ file *flock.Flock }

// lockFolder creates dir if needed, readable by its owner only, and locks it.
func lockFolder(dir string) (*folderLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, hint.Add(fmt.Errorf("data folder %s cannot be made: %w", dir, unwrapPath(err)),
			"Choose a folder that you may write to.")
	}
	file := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	switch got, err := file.TryLock(); {
	case err != nil:
		return nil, hint.Add(fmt.Errorf("data folder %s cannot be locked: %w", dir, unwrapPath(err)),
			"Choose a folder that you may write to, on a disk of this machine.")

	case !got:
		return nil, hint.Add(fmt.Errorf("data folder %s is in use by another hubbub", dir),
			"Stop the other one, or give this one a folder of its own.")
	}
	return &folderLock{file}, nil
}

func (l *folderLock) release() error { return l.file.Unlock() }

const (
	// scratchPrefix begins the names of the folders of stores in memory.
	scratchPrefix = "hubbub-store-"
	// lockFile is the file in a folder that is locked.
	lockFile = "lock"
	// scratchAge is how old a folder must be: a newer one may be about to be
	// locked.
	scratchAge = time.Minute
)

// removeScratch removes the folders of stores in memory whose processes were
// killed. What cannot be removed remains.
func removeScratch() {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range folders {
		info, err := os.Lstat(filepath.Join(dir, lockFile))
		if err != nil || time.Since(info.ModTime()) < scratchAge {
			continue
		}
		if lock, err := lockFolder(dir); err == nil {
			_ = errors.Join(lock.release(), os.RemoveAll(dir))
		}
	}
}

// WriteFile writes a file that only its owner can read, and syncs it. It is
// atomic: after a crash at any moment there is either the old file or the new
// one.
func WriteFile(file string, raw []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(raw)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// unwrapPath drops the path that a file error repeats.
func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
