package datafolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"hubbub/protocol/errno"
)

// metaFile is in the folder of each stream.
const metaFile = "meta.inf"

// Guard protects the streams in a data folder while a NATS server opens them, which deletes all of
// a stream that it cannot open, be it that there are too many open files for a moment. Each file has
// a second name meanwhile. Nothing is protected where files have none, as on some network disks, or
// where the name of an open file cannot be removed.
type Guard struct{ streams, kept string }

// NewGuard protects the streams of a data folder until Release. The error is that of too many open
// files, with which the NATS server would delete streams that are not protected.
func NewGuard(dir string) (Guard, error) {
	g := guardOf(dir)
	err := g.link()
	if err == nil || errors.Is(err, fs.ErrExist) { // of a process that was killed
		return g, nil
	}
	removed := os.RemoveAll(g.kept)
	if errno.Is(err, syscall.EMFILE, syscall.ENFILE) {
		return g, errors.Join(err, removed)
	}
	return g, nil
}

func guardOf(dir string) Guard {
	streams := Streams(dir)
	if to, err := filepath.EvalSymlinks(streams); err == nil { // which may be on another disk
		streams = to
	}
	return Guard{streams, streams + ".opening"}
}

// link gives the files their second names. What is linked elsewhere stays there.
func (g Guard) link() error {
	if runtime.GOOS == "windows" {
		return errors.ErrUnsupported
	}
	return filepath.WalkDir(g.streams, func(path string, d fs.DirEntry, err error) error {
		kept := g.kept + strings.TrimPrefix(path, g.streams)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Mkdir(kept, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(to, kept))
		}
		return os.Link(path, kept)
	})
}

// deleted are the names of the streams that were protected and are no longer there.
func (g Guard) deleted() (names []string) {
	entries, _ := os.ReadDir(g.kept) // none: nothing is protected
	for _, e := range entries {
		_, had := os.Stat(filepath.Join(g.kept, e.Name(), metaFile))
		_, has := os.Stat(filepath.Join(g.streams, e.Name(), metaFile))
		if had == nil && errors.Is(has, fs.ErrNotExist) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Check is the error of a NATS server that has deleted a stream.
func (g Guard) Check() error {
	if names := g.deleted(); len(names) > 0 {
		return fmt.Errorf("%s could not be opened", strings.Join(names, ", "))
	}
	return nil
}

// Release ends the protection, and brings back what was deleted: then no NATS server may run.
func (g Guard) Release() error {
	for _, name := range g.deleted() {
		stream := filepath.Join(g.streams, name)
		err := errors.Join(os.RemoveAll(stream), os.MkdirAll(g.streams, 0o700)) // which it deletes, too, when it is empty
		if err == nil {
			err = os.Rename(filepath.Join(g.kept, name), stream)
		}
		if err != nil {
			return fmt.Errorf("stream %s cannot be brought back from %s: %w", name, g.kept, err)
		}
	}
	return os.RemoveAll(g.kept)
}
