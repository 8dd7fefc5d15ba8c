package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// streamsOnDisk creates a store with streams, an object and events, and
// closes it.
func streamsOnDisk(t *testing.T, dir string, n int) {
	t.Helper()
	ctx := context.Background()
	s := testkit.Must(Open(ctx, Options{Dir: dir}))(t)
	for i := range n {
		id := fmt.Sprint("s", i)
		testkit.NoError(t, s.Create(ctx, record(id), "secret"))
		testkit.NoError(t, s.Append(ctx, id, 0, [][]byte{[]byte("event of " + id)}))
	}
	put(t, s, "a", "x", noise(3*mediaChunk, 1), time.Now())
	testkit.NoError(t, s.Close())
}

func blockOf(dir, stream string) string {
	return filepath.Join(datafolder.Streams(dir), stream, "msgs", "1.blk")
}

// damageFile overwrites bytes in the middle of a file, as a disk does: without a new time.
func damageFile(t *testing.T, file string, n int) {
	t.Helper()
	raw := testkit.Must(os.ReadFile(file))(t)
	info := testkit.Must(os.Stat(file))(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		raw[len(raw)/2+i] ^= byte(1 + random.IntN(255))
	}
	testkit.NoError(t, os.WriteFile(file, raw, 0o600))
	testkit.NoError(t, os.Chtimes(file, time.Time{}, info.ModTime()))
}

// Copies of blocks that a NATS server was writing when it was killed do not stay: they have
// what is deleted later.
func TestCopiesOfBlocksAreRemoved(t *testing.T) {
	dir := t.TempDir()
	streamsOnDisk(t, dir, 1)
	var copies []string
	for _, stream := range []string{"EVENTS", datafolder.MediaStream} {
		for _, name := range []string{"7.blk.tmp", "8.new"} {
			copies = append(copies, filepath.Join(datafolder.Streams(dir), stream, "msgs", name))
		}
	}
	for _, file := range copies {
		testkit.NoError(t, os.WriteFile(file, []byte("a voiceprint"), 0o600))
	}
	s := open(t, dir)
	for _, file := range copies {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if got, err := s.Messages(t.Context(), "s0"); len(got) != 1 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// 200 damaged bytes cost the records that they are in, are logged and counted,
// and everything else is there.
func TestDamagedStore(t *testing.T) {
	for _, clean := range []bool{true, false} { // with and without the state that a NATS server leaves at its end
		t.Run(fmt.Sprint("clean=", clean), func(t *testing.T) {
			const streams = 50
			dir := t.TempDir()
			streamsOnDisk(t, dir, streams)
			if reports, err := datafolder.Check(dir); err != nil || damageOf(reports) != 0 {
				t.Fatalf("an intact store: %+v %v", reports, err)
			}
			for _, stream := range []string{"KV_sessions", "EVENTS"} {
				damageFile(t, blockOf(dir, stream), 200)
				if !clean {
					testkit.NoError(t, os.Remove(filepath.Join(datafolder.Streams(dir), stream, "msgs", "index.db")))
				}
			}
			reports := testkit.Must(datafolder.Check(dir))(t)
			for _, r := range reports {
				if hit := r.Stream == "KV_sessions" || r.Stream == "EVENTS"; hit != (r.Damaged >= 200) || hit != (r.Ranges == 1) {
					t.Errorf("%+v", r)
				}
			}

			var log testkit.Buffer // the store may log at any time
			ctx := context.Background()
			s := testkit.Must(Open(ctx, Options{Dir: dir, Logger: log.Logger()}))(t)
			if d := s.Damaged(); d < 400 {
				t.Errorf("%+v", d)
			}
			if got := strings.Count(log.String(), "level=ERROR"); got != 2 || !strings.Contains(log.String(), "damaged") {
				t.Errorf("the log says:\n%s", log.String())
			}
			records, events := 0, 0
			for i := range streams {
				id := fmt.Sprint("s", i)
				if rec, err := s.Get(ctx, id); err == nil && rec.ID == id {
					records++
				}
				if kept, err := s.Messages(ctx, id); err == nil && len(kept) == 1 && string(kept[0]) == "event of "+id {
					events++
				}
			}
			// A record of a stream has about 300 bytes, one of an event about 70.
			if records < streams-2 || records == streams || events < streams-5 || events == streams {
				t.Errorf("of %d streams %d records and %d events are there", streams, records, events)
			}
			running(t, s, "new")
			if err := finish(s, "new"); err != nil {
				t.Error(err)
			}
			testkit.NoError(t, s.Close())
			if reports, err := datafolder.Check(dir); err != nil || damageOf(reports) != 0 {
				t.Errorf("afterwards: %+v %v", reports, err)
			}
		})
	}
}

// A file that cannot be opened or, after a crash, read does not cost the stream that it is of: the
// store does not open.
func TestUnreadableStream(t *testing.T) {
	closed := func(file string) error { return os.Symlink("nowhere", file) }
	unread := func(file string) error { return os.Mkdir(file, 0o700) }
	for _, c := range []struct {
		stream string
		create func(file string) error
	}{{"KV_sessions", closed}, {"EVENTS", closed}, {datafolder.MediaStream, closed}, {datafolder.MediaStream, unread}} {
		stream, dir := c.stream, t.TempDir()
		streamsOnDisk(t, dir, 1)
		block := filepath.Join(datafolder.Streams(dir), stream, "msgs", "2.blk")
		testkit.NoError(t, c.create(block))
		if s, err := Open(t.Context(), Options{Dir: dir}); err == nil {
			t.Errorf("the store opens without a block of %s", stream)
			testkit.NoError(t, s.Close())
		} else if !strings.Contains(err.Error(), block) || hint.Of(err) == "" {
			t.Errorf("%s: %v, %q", stream, err, hint.Of(err))
		}
		testkit.NoError(t, os.RemoveAll(block))
		s := open(t, dir)
		if _, err := s.Get(t.Context(), "s0"); err != nil {
			t.Errorf("without %s: the record: %v", stream, err)
		}
		if got, err := s.Messages(t.Context(), "s0"); len(got) != 1 || err != nil {
			t.Errorf("without %s: events: %q, %v", stream, got, err)
		}
		if got := get(t, s, "a", "x", time.Now()); !bytes.Equal(got, noise(3*mediaChunk, 1)) {
			t.Errorf("without %s: %d bytes of media", stream, len(got))
		}
	}
}

// A backup without some of the media is an error.
func TestBackupOfDamagedMedia(t *testing.T) {
	dir := t.TempDir()
	streamsOnDisk(t, dir, 1)
	damageFile(t, blockOf(dir, datafolder.MediaStream), 200)
	s := open(t, dir)
	if err := s.Backup(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "cannot be read") || hint.Of(err) == "" {
		t.Errorf("%v; %s", err, hint.Of(err))
	}
}

// An operator may have moved streams to another disk.
func TestLinkedFolders(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	streamsOnDisk(t, dir, 1)
	for i, folder := range []string{filepath.Join(datafolder.Streams(dir), datafolder.MediaStream), datafolder.Streams(dir)} {
		moved := filepath.Join(elsewhere, fmt.Sprint(i))
		testkit.NoError(t, os.Rename(folder, moved))
		testkit.NoError(t, os.Symlink(moved, folder))
		s := testkit.Must(Open(t.Context(), Options{Dir: dir}))(t)
		if got := get(t, s, "a", "x", time.Now()); !bytes.Equal(got, noise(3*mediaChunk, 1)) {
			t.Errorf("%d bytes of media", len(got))
		}
		testkit.NoError(t, s.Close())
	}
}

func damageOf(reports []datafolder.Report) (n int64) {
	for _, r := range reports {
		n += r.Damaged
	}
	return n
}

// A write that was cut off by a crash is no damage, and a check finds damaged
// media, which a start does not look for.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	streamsOnDisk(t, dir, 3)
	file := blockOf(dir, "EVENTS")
	raw := testkit.Must(os.ReadFile(file))(t)
	for _, tail := range [][]byte{raw[:10], raw[:40], make([]byte, 100)} {
		testkit.NoError(t, os.WriteFile(file, append(bytes.Clone(raw), tail...), 0o600))
		if reports, err := datafolder.Check(dir); err != nil || damageOf(reports) != 0 {
			t.Errorf("%d bytes of a write: %+v %v", len(tail), reports, err)
		}
	}
	damageFile(t, blockOf(dir, datafolder.MediaStream), 1)
	if reports, err := datafolder.Check(dir); err != nil || damageOf(reports) == 0 {
		t.Errorf("damaged media: %+v %v", reports, err)
	}
	s := open(t, dir)
	testkit.Equal(t, s.Damaged(), 0)
	for name, beside := range map[string]func() error{
		"another store": func() error { _, err := Open(t.Context(), Options{Dir: dir}); return err },
		"a check":       func() error { _, err := datafolder.Check(dir); return err },
		"a purge":       func() error { _, err := datafolder.Purge(dir, true); return err },
	} {
		if err := beside(); err == nil || !strings.Contains(err.Error(), "in use") || hint.Of(err) == "" {
			t.Errorf("%s beside a server: %v", name, err)
		}
	}
	testkit.Must(s.Get(t.Context(), "s1"))(t)
	if _, err := datafolder.Check(t.TempDir()); hint.Of(err) == "" {
		t.Errorf("check of an empty folder: %v", err)
	}
}

func TestPurgeRemovesMediaOrEverything(t *testing.T) {
	dir := t.TempDir()
	streamsOnDisk(t, dir, 3)
	for _, all := range []bool{false, true} {
		freed, err := datafolder.Purge(dir, all)
		if err != nil || freed == 0 || all != (freed < 3*mediaChunk) {
			t.Errorf("all=%v: %d bytes, %v", all, freed, err)
		}
		s := testkit.Must(Open(context.Background(), Options{Dir: dir}))(t)
		if _, err := s.StatMedia(context.Background(), "a", "x", time.Now()); !errors.Is(err, ErrNotFound) {
			t.Errorf("all=%v: the object: %v", all, err)
		}
		if _, err := s.Get(context.Background(), "s1"); all != errors.Is(err, ErrNotFound) {
			t.Errorf("all=%v: the stream: %v", all, err)
		}
		put(t, s, "a", "y", []byte("later"), time.Now())
		testkit.NoError(t, s.Close())
	}
}
