// Package atomicfile writes files in one step: a reader, also after a crash or a power
// failure at any moment, sees either what was there before or the whole new content.
package atomicfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hubbub/protocol/errno"
)

// TempPrefix begins the name of a file that is being written, beside the one that it becomes.
// After a crash it remains.
const TempPrefix = ".tmp-"

// Write writes a file; perm is its mode before the umask. Without replace a file that exists
// is an error, fs.ErrExist.
func Write(path string, perm fs.FileMode, replace bool, write func(io.Writer) error) error {
	temp, err := createTemp(path, perm)
	if err != nil {
		return named(path, err)
	}
	defer os.Remove(temp.Name())
	if err := cmp.Or(write(namedWriter{temp, path}), temp.Sync(), temp.Close()); err != nil {
		return named(path, err)
	}
	if replace {
		err = rename(temp.Name(), path)
	} else {
		err = link(temp.Name(), path)
	}
	if err == nil {
		syncFolder(filepath.Dir(path))
	}
	return named(path, err)
}

// named is an error of the system about a temporary file, under the name of the file that it
// becomes.
func named(path string, err error) error {
	switch err := err.(type) {
	case *os.LinkError:
		return &fs.PathError{Op: err.Op, Path: path, Err: err.Err}
	case *fs.PathError:
		if strings.HasPrefix(filepath.Base(err.Path), TempPrefix) {
			return &fs.PathError{Op: err.Op, Path: path, Err: err.Err}
		}
	}
	return err
}

// namedWriter writes a temporary file. Its errors, which others describe, name the file that it becomes.
type namedWriter struct {
	temp *os.File
	path string
}

func (w namedWriter) Write(b []byte) (int, error) {
	n, err := w.temp.Write(b)
	return n, named(w.path, err)
}

// Check is the error that Write would have in a folder that takes no files.
func Check(dir string) error {
	temp, err := createTemp(filepath.Join(dir, TempPrefix), 0o600)
	if err != nil {
		return fmt.Errorf("no file can be written into %s: %w", dir, errors.Unwrap(err))
	}
	return errors.Join(temp.Close(), os.Remove(temp.Name()))
}

// Replace is Write, with replace, for a path that a user has given. A device or a pipe is written
// to, and what a link refers to is replaced: a rename would put a file in the place of /dev/stdout.
func Replace(path string, perm fs.FileMode, write func(io.Writer) error) error {
	target, special := follow(path)
	if !special {
		return Write(target, perm, true, write)
	}
	file, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// CheckReplace is the error that Replace would have in a folder that takes no files.
func CheckReplace(path string) error {
	target, special := follow(path)
	if special {
		return nil
	}
	return Check(filepath.Dir(target))
}

// follow is the file that path refers to, and whether it is a device or a pipe.
func follow(path string) (target string, special bool) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	st, err := os.Stat(path)
	return path, err == nil && !st.Mode().IsRegular() && !st.IsDir()
}

// WriteFile is Write, with replace, of bytes.
func WriteFile(path string, content []byte, perm fs.FileMode) error {
	return Write(path, perm, true, bytesOf(content))
}

// CreateFile is Write, without replace, of bytes.
func CreateFile(path string, content []byte, perm fs.FileMode) error {
	return Write(path, perm, false, bytesOf(content))
}

func bytesOf(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// rename renames a file to path. On Windows that fails while a program has path open, which one that
// looks for viruses has for a moment: then it is tried again, for half a second.
func rename(temp, path string) (err error) {
	for attempt := range 10 {
		err = os.Rename(temp, path)
		if !errno.Is(err, syscall.EACCES, syscall.EBUSY) {
			break
		}
		pause(time.Duration(attempt) * 10 * time.Millisecond)
	}
	return err
}

var pause = time.Sleep // tests replace it

// link gives a file a name that no file has. A link fails in one step where there is one; not
// all file systems have links.
func link(temp, path string) error {
	if err := os.Link(temp, path); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	return os.Rename(temp, path)
}

// createTemp creates a file beside path. Its mode, unlike that of os.CreateTemp, is left to
// the umask.
func createTemp(path string, perm fs.FileMode) (temp *os.File, err error) {
	for range 100 {
		name := fmt.Sprintf("%s%08x", TempPrefix, rand.Uint32()) // short: path may be as long as a name can be
		temp, err = os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return temp, err
}

// syncFolder makes a new name in a folder survive a power failure, where the system can do
// that.
func syncFolder(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = errors.Join(f.Sync(), f.Close())
	}
}
