package backup

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"hubbub/localserver/store/datafolder"
	"hubbub/localserver/store/embedded"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
)

// restorePrefix begins the name of the folder in a data folder in which a backup
// is restored, before it becomes visible.
const restorePrefix = ".restore-"

// leastFree is the disk space, in bytes, that remains for a server.
const leastFree = 8 << 20

// reader is a backup that is complete and unchanged.
type reader struct {
	zip  *zip.ReadCloser
	list manifest
}

// Verify returns an error with a hint unless a file is a complete and
// unchanged backup.
func Verify(file string) error {
	b, err := open(file)
	if err != nil {
		return err
	}
	return b.zip.Close()
}

func open(file string) (_ *reader, err error) {
	b := &reader{}
	if b.zip, err = zip.OpenReader(file); err == nil {
		if err = b.checkSizes(file); err == nil {
			err = b.verify()
		}
		if err == nil {
			return b, nil
		}
		_ = b.zip.Close()
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, hint.Add(fmt.Errorf("backup %s cannot be read: %w", file, datafolder.UnwrapPath(err)),
			"Give a file of 'hubbub store backup'.")
	}
	return nil, hint.Add(fmt.Errorf("%s is not a complete backup: %w", file, err),
		"It was cut off or changed, or is not a file of 'hubbub store backup'. Use another one.")
}

// checkSizes returns an error unless the entries are as Write writes them, not compressed, and
// no larger than the file together: entries are read into memory, as large as they state.
func (b *reader) checkSizes(file string) error {
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	left := uint64(st.Size())
	for _, f := range b.zip.File {
		if f.Method != zip.Store || f.UncompressedSize64 > left {
			return fmt.Errorf("%q is compressed, or larger than the file", f.Name)
		}
		left -= f.UncompressedSize64
	}
	return nil
}

// verify compares the entries with the manifest, and with their checksums.
func (b *reader) verify() error {
	raw, err := b.read(manifestEntry)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &b.list); err != nil {
		return fmt.Errorf("%s: %w", manifestEntry, err)
	}
	if b.list.Format != format {
		return fmt.Errorf("it has format %d, this version of hubbub reads %d", b.list.Format, format)
	}
	if len(b.zip.File) != len(b.list.Entries)+1 {
		return fmt.Errorf("it has %d entries instead of %d", len(b.zip.File), len(b.list.Entries)+1)
	}
	for _, e := range b.list.Entries {
		if !validEntry(e.Name) {
			return fmt.Errorf("%q is not an entry of a backup", e.Name)
		}
		if err := b.check(e.Name); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// validEntry reports whether a name is one that Write writes, and names a place
// inside the data folder.
func validEntry(name string) bool {
	if stream, ok := strings.CutPrefix(name, streamEntries); ok {
		return stream != "" && !strings.ContainsAny(stream, `/\`)
	}
	file, ok := strings.CutPrefix(name, fileEntries)
	first, _, _ := strings.Cut(file, "/")
	return ok && path.Clean(file) == file && filepath.IsLocal(filepath.FromSlash(file)) && first != datafolder.JetStream && file != datafolder.LockFile
}

// check reads an entry to its end, where package zip compares its size and checksum.
func (b *reader) check(name string) error {
	r, err := b.zip.Open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

func (b *reader) read(name string) ([]byte, error) { return fs.ReadFile(b.zip, name) }

// Restore makes a data folder from a backup. The folder must be empty or not
// exist; after an error it is as before. Errors that a user can do something
// about carry a hint.
func Restore(file, dir string, log *slog.Logger) (err error) {
	b, err := open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.zip.Close()) }()
	entries, err := os.ReadDir(dir)
	exists := !errors.Is(err, fs.ErrNotExist)
	switch {
	case exists && err != nil:
		return hint.Add(fmt.Errorf("data folder %s cannot be read: %w", dir, datafolder.UnwrapPath(err)),
			"Choose a folder that you may write to.")
	case len(entries) > 0:
		return hint.Add(fmt.Errorf("data folder %s is not empty", dir),
			"Give a new folder, and start the server with it.")
	}
	lock, err := datafolder.Acquire(dir)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, lock.Release())
		if err == nil {
			return
		}
		_ = os.Remove(filepath.Join(dir, datafolder.LockFile))
		if !exists {
			_ = os.Remove(dir)
		}
	}()
	if err := datafolder.CheckSpace(dir, b.list.Stored+leastFree); err != nil {
		return hint.Add(fmt.Errorf("the disk of %s has no space for %d KiB", dir, b.list.Stored>>10),
			"Free some space there, or choose another disk.")
	}
	temp, err := os.MkdirTemp(dir, restorePrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := b.restoreTo(temp, log); err != nil {
		return fmt.Errorf("the backup cannot be restored: %w", err)
	}
	return moveAll(temp, dir)
}

// restoreTo writes everything into a new folder.
func (b *reader) restoreTo(dir string, log *slog.Logger) (err error) {
	server, err := embedded.Start(dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	for _, e := range b.list.Entries {
		if stream, ok := strings.CutPrefix(e.Name, streamEntries); ok && !strings.HasSuffix(stream, configSuffix) {
			if err := b.restoreStream(server, dir, stream); err != nil {
				return fmt.Errorf("%s: %w", stream, err)
			}
		} else if file, ok := strings.CutPrefix(e.Name, fileEntries); ok {
			to := filepath.Join(dir, filepath.FromSlash(file))
			raw, err := b.read(e.Name)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(to), 0o700)
			}
			if err == nil {
				err = atomicfile.WriteFile(to, raw, 0o600)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// restoreAttempts limits how often the restoring of a stream is tried.
const restoreAttempts = 10

// restoreStream restores a stream into the server of a folder. On Windows a server that reads the
// folder of a new stream at the same time cannot rename it, which nats-server 2.15 does: then it is
// tried again.
func (b *reader) restoreStream(server *embedded.Server, dir, name string) error {
	for attempt := 1; ; attempt++ {
		err := b.tryStream(server, name)
		if attempt == restoreAttempts || !errno.Is(err, syscall.EBUSY, syscall.EACCES) {
			return err
		}
		if err := errors.Join(server.Stop(), os.RemoveAll(filepath.Join(datafolder.Streams(dir), name)), server.Restart()); err != nil {
			return err
		}
	}
}

func (b *reader) tryStream(server *embedded.Server, name string) error {
	raw, err := b.read(streamEntries + name + configSuffix)
	if err != nil {
		return err
	}
	var config natsserver.StreamConfig
	if err := json.Unmarshal(raw, &config); err != nil {
		return err
	}
	if config.Name != name {
		return fmt.Errorf("the configuration is that of %q", config.Name)
	}
	r, err := b.zip.Open(streamEntries + name)
	if err != nil {
		return err
	}
	return errors.Join(server.RestoreStream(&config, r), r.Close())
}

// moveAll moves what is in a folder into the one above it. What the NATS server
// has written comes last: without it there is no store.
func moveAll(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, store := range []bool{false, true} {
		for _, e := range entries {
			if (e.Name() == datafolder.JetStream) != store {
				continue
			}
			if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
