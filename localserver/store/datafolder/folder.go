// Package datafolder is the data folder of a server without its NATS server: the lock
// that reserves it for one process, free space, the deletion of what it stores (Purge), the
// check of the streams in it (check.go, blocks.go), which finds damaged records and
// repairs the files that have some, and the protection of the streams while a NATS server
// opens them (guard.go).
package datafolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"hubbub/protocol/diskspace"
	"hubbub/protocol/hint"
)

// Lock reserves a data folder for one process. The operating system
// releases it when the process ends, however it ends.
type Lock struct{ file *flock.Flock }

// Acquire creates dir if needed, readable by its owner only, and locks it.
func Acquire(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, hint.Add(fmt.Errorf("data folder %s cannot be made: %w", dir, UnwrapPath(err)),
			"Choose a folder that you may write to.")
	}
	file := flock.New(filepath.Join(dir, LockFile), flock.SetPermissions(0o600))
	switch got, err := file.TryLock(); {
	case err != nil:
		return nil, hint.Add(fmt.Errorf("data folder %s cannot be locked: %w", dir, UnwrapPath(err)),
			"Choose a folder that you may write to, on a disk of this machine.")

	case !got:
		return nil, hint.Add(fmt.Errorf("data folder %s is in use by another hubbub", dir),
			"Stop the other one, or give this one a folder of its own.")
	}
	return &Lock{file}, nil
}

// Release ends the reservation.
func (l *Lock) Release() error { return l.file.Unlock() }

const (
	// JetStream is where the NATS server stores everything, in a data
	// folder.
	JetStream = "jetstream"
	// Jobs has the audio of running jobs. It is of no use to another process.
	Jobs = "jobs"
	// ScratchPrefix begins the names of the folders of servers without a data folder.
	ScratchPrefix = "hubbub-store-"
	// LockFile is the file in a folder that is locked.
	LockFile = "lock"
	// scratchAge is how old a folder must be: a newer one may be about to be
	// locked.
	scratchAge = time.Minute
)

// RemoveScratch removes the folders of servers without a data folder whose processes
// were killed. What cannot be removed remains.
func RemoveScratch() {
	names, _ := fs.Glob(os.DirFS(os.TempDir()), ScratchPrefix+"*") // the pattern is valid
	for _, name := range names {
		dir := filepath.Join(os.TempDir(), name)
		info, err := os.Lstat(filepath.Join(dir, LockFile))
		if err != nil || time.Since(info.ModTime()) < scratchAge {
			continue
		}
		if lock, err := Acquire(dir); err == nil {
			_ = errors.Join(lock.Release(), os.RemoveAll(dir))
		}
	}
}

// UnwrapPath drops the path that a file error repeats.
func UnwrapPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// CheckSpace returns an error with a hint if the disk of a data folder has less
// than some bytes free. Without a folder, or where that is not known, it is nil.
func CheckSpace(dir string, need int64) error {
	free, _, err := diskspace.Of(dir)
	if dir == "" || err != nil || free >= need {
		return nil
	}
	return hint.Add(fmt.Errorf("the disk of data folder %s is full: %d KiB are free", dir, free>>10),
		"Free some space there, or delete the stored media: hubbub store purge --data "+dir)
}
