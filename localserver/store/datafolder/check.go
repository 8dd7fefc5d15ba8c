package datafolder

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hubbub/protocol/atomicfile"
	"hubbub/protocol/hint"
)

// MediaStream holds the bytes of media objects: most of what is on a disk.
const MediaStream = "MEDIA"

// indexFile is where a NATS server notes what the blocks beside it contain, at its end and
// now and then.
const indexFile = "index.db"

// Report is what a check found in one stream of a store on disk.
type Report struct {
	Stream  string `json:"stream"`
	Records int    `json:"records"` // intact ones, deleted ones that are still on the disk included
	Bytes   int64  `json:"bytes"`   // on the disk
	Damaged int64  `json:"damaged"` // bytes of records that are not intact
	Ranges  int    `json:"ranges"`  // contiguous ranges of them, each of one record at least
}

// Streams is where the NATS server keeps its streams below a data folder.
func Streams(dir string) string {
	return filepath.Join(dir, JetStream, "jetstream", "$G", "streams")
}

// Check reads all of the store on disk in a data folder that no server uses.
// It changes nothing.
func Check(dir string) ([]Report, error) {
	lock, err := lockStore(dir)
	if err != nil {
		return nil, err
	}
	reports, err := checkStreams(dir, true, nil)
	return reports, errors.Join(err, lock.Release())
}

// Purge deletes the media objects in a data folder that no server uses, and
// with all everything else that its store holds: streams, events, voices, jobs. It
// returns how many bytes that freed. It needs no free space.
func Purge(dir string, all bool) (freed int64, err error) {
	lock, err := lockStore(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := guardOf(dir).Release(); err != nil { // or a start would bring back what is deleted here
		return 0, err
	}
	streams, err := streamNames(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range streams {
		if !all && name != MediaStream && name != "KV_media" {
			continue
		}
		folder := filepath.Join(Streams(dir), name)
		freed += folderSize(folder)
		if err := os.RemoveAll(folder); err != nil {
			return freed, fmt.Errorf("stream %s cannot be deleted: %w", name, err)
		}
	}
	return freed, nil
}

// lockStore locks a data folder that is there.
func lockStore(dir string) (*Lock, error) {
	if _, err := os.Stat(Streams(dir)); err != nil {
		return nil, NoStore(dir)
	}
	return Acquire(dir)
}

// NoStore is the error for a folder without a store. It carries a hint.
func NoStore(dir string) error {
	return hint.Add(fmt.Errorf("there is no store in %s", dir),
		"Give the folder that the server was given with --data; with --nats the store is on the cluster.")
}

func folderSize(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

func streamNames(dir string) (names []string, err error) {
	entries, err := os.ReadDir(Streams(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the store cannot be read: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// checkStreams checks the streams below a data folder, that of media only if asked or if the
// NATS server will read all of it. Blocks that are damaged are given to repair, unless it is nil.
func checkStreams(dir string, media bool, repair func(file string, b block) error) (reports []Report, err error) {
	streams, err := streamNames(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range streams {
		files, err := blockFiles(filepath.Join(Streams(dir), name))
		if err != nil {
			return nil, err
		}
		if name == MediaStream && !media && indexed(files) {
			continue
		}
		r := Report{Stream: name}
		for i, file := range files {
			raw, err := os.ReadFile(file.path)
			if err != nil {
				return nil, fmt.Errorf("the store cannot be read: %w", err)
			}
			b := scanBlock(name, file.index, i == len(files)-1, raw)
			r.Records += b.records
			r.Bytes += int64(len(raw))
			r.Damaged += int64(b.damaged)
			r.Ranges += b.ranges
			if b.damaged > 0 && repair != nil {
				if err := repair(file.path, b); err != nil {
					return nil, err
				}
			}
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// indexed reports whether the index of a stream is as new as its blocks. After a crash it is
// not: then the NATS server reads all blocks, and deletes the stream if it cannot read one.
func indexed(files []blockFile) bool {
	for _, file := range files {
		index, err := os.Stat(filepath.Join(filepath.Dir(file.path), indexFile))
		block, unread := os.Stat(file.path)
		if err != nil || unread != nil || block.ModTime().After(index.ModTime()) {
			return false
		}
	}
	return true
}

// blockFile is a block of a stream.
type blockFile struct {
	path  string
	index int
}

// blockFiles lists the blocks of a stream, the oldest first.
func blockFiles(folder string) (files []blockFile, err error) {
	entries, err := os.ReadDir(filepath.Join(folder, "msgs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the store cannot be read: %w", err)
	}
	for _, e := range entries {
		number, isBlock := strings.CutSuffix(e.Name(), ".blk")
		if index, err := strconv.Atoi(number); isBlock && err == nil {
			files = append(files, blockFile{filepath.Join(folder, "msgs", e.Name()), index})
		}
	}
	slices.SortFunc(files, func(a, b blockFile) int { return cmp.Compare(a.index, b.index) })
	return files, nil
}

// LargestBlock is the size of the largest block of a stream in a data folder, in bytes; 0 if
// there is none.
func LargestBlock(dir, stream string) (most int64) {
	files, _ := blockFiles(filepath.Join(Streams(dir), stream)) // none that can be read
	for _, file := range files {
		if info, err := os.Stat(file.path); err == nil { // it is still there
			most = max(most, info.Size())
		}
	}
	return most
}

// Repair checks a store before its NATS server starts, media only after a crash. It
// replaces damaged blocks by their intact records, so that the server does not
// cut them off, and logs what it found. It returns how many bytes were damaged.
func Repair(dir string, log *slog.Logger) (damaged int64, err error) {
	if err := CheckAccess(dir); err != nil {
		return 0, err
	}
	if err := removeCopies(dir); err != nil {
		return 0, err
	}
	repair := func(file string, b block) error {
		log.Error("a file of the store is damaged; its intact records are used",
			"file", file, "intact-records", b.records, "damaged-ranges", b.ranges, "damaged-bytes", b.damaged)
		if err := atomicfile.WriteFile(file, b.intact, 0o600); err != nil {
			return err
		}
		// What the server noted of its blocks is not true any more.
		err := os.Remove(filepath.Join(filepath.Dir(file), indexFile))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	reports, err := checkStreams(dir, false, repair)
	if err != nil {
		return 0, fmt.Errorf("the store could not be checked: %w", err)
	}
	for _, r := range reports {
		damaged += r.Damaged
	}
	return damaged, nil
}

// CheckAccess returns an error if something in the streams cannot be read or written. It comes
// before each start of the NATS server, which deletes all of a stream that it cannot open. What a
// process that was killed at its start has left so is brought back.
func CheckAccess(dir string) error {
	check := func(path string, _ fs.DirEntry, err error) error {
		switch info, found := os.Stat(path); { // an operator may have moved a folder and left a link
		case errors.Is(found, fs.ErrNotExist) && path == Streams(dir): // a new store
			return nil
		case err != nil || found != nil:
			return cmp.Or(err, found)
		case info.IsDir():
			return atomicfile.Check(path)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return file.Close()
	}
	err := guardOf(dir).Release()
	if err == nil {
		err = filepath.WalkDir(Streams(dir), check)
	}
	if err != nil {
		return hint.Add(fmt.Errorf("the store cannot be used: %w", err),
			"Make everything in the data folder readable and writable for this user; nothing was changed.")
	}
	return nil
}

// removeCopies removes the copies of blocks that a NATS server was writing when its process
// was killed. The next one leaves them, with everything that is deleted from the blocks later.
func removeCopies(dir string) error {
	for _, pattern := range []string{"*/msgs/*.blk.tmp", "*/msgs/*.new"} {
		files, _ := fs.Glob(os.DirFS(Streams(dir)), pattern) // the patterns are valid
		for _, file := range files {
			if err := os.Remove(filepath.Join(Streams(dir), file)); err != nil {
				return fmt.Errorf("the copy of a block cannot be removed: %w", err)
			}
		}
	}
	return nil
}
