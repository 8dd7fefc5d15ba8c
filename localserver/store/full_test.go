package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/store/embedded"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// fillWithMedia stores objects until the store refuses one.
func fillWithMedia(t *testing.T, s *Store) {
	t.Helper()
	for i := range 1000 {
		if err := s.write("a", fmt.Sprint("o", i), 700_000, false, time.Now()); err != nil {
			if !Full(err) {
				t.Fatalf("upload %d: %v", i, err)
			}
			return
		}
	}
	t.Fatal("the store takes everything")
}

// running creates a stream and begins it.
func running(t *testing.T, s *Store, id string) {
	t.Helper()
	ctx := context.Background()
	testkit.NoError(t, s.Create(ctx, record(id), "secret"))
	testkit.NoError(t, s.Begin(ctx, id, "secret", Claim{"n1", id}, noon))
}

// finish appends an event and finishes a stream.
func finish(s *Store, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Append(ctx, id, 0, [][]byte{[]byte("event")}); err != nil {
		return err
	}
	return s.Finish(ctx, id, Done, noon, "")
}

// Media and large requests leave space for streams, also those that resume another one, and
// new streams leave space in which running ones are finished.
func TestReserveIsForRunningStreams(t *testing.T) {
	for name, o := range map[string]Options{"memory": {}, "disk": {}} {
		t.Run(name, func(t *testing.T) {
			if name == "disk" {
				o.Dir = filepath.Join(testkit.SmallDisk(t, "64m"), "data")
			}
			ctx := context.Background()
			s := testkit.Must(Open(ctx, o))(t)
			defer func() { _ = s.Close() }()
			running(t, s, "running")
			fillWithMedia(t, s)
			if err := s.Ping(ctx); err != nil {
				t.Errorf("with space for streams: %v", err)
			}
			resume := "" // an earlier stream
			create := func(id string, size int) error {
				rec := record(id)
				rec.Resume = resume
				rec.Input = json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
				return s.Create(ctx, rec, "secret")
			}
			fill := func(what string, size int) {
				t.Helper()
				for i := range 5000 {
					if err := create(fmt.Sprint(what, i), size); err != nil {
						if !Full(err) {
							t.Errorf("a %s request: %v", what, err)
						}
						return
					}
				}
				t.Fatal("the store takes everything")
			}
			fill("large", 200_000)
			if err := errors.Join(s.Ping(ctx), create("other", 100)); err != nil {
				t.Errorf("after large requests: %v", err)
			}
			if err := s.CreateJob(ctx, Job{ID: "large", Account: "a", Request: json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)}); !Full(err) {
				t.Errorf("a large job: %v", err)
			}
			resume = "running"
			if err := create("resumed", 200_000); err != nil {
				t.Errorf("a large request that resumes a stream: %v", err)
			}
			fill("resumed", 200_000)
			resume = ""
			if err := errors.Join(s.Ping(ctx), create("small", 100)); err != nil {
				t.Errorf("after large requests that resume a stream: %v", err)
			}
			events := [][]byte{make([]byte, 300<<10)} // of running streams
			for i := 0; ; i++ {
				if free, total, err := s.space(ctx); err != nil || free < reserve(total)*5/4 {
					break
				}
				testkit.NoError(t, s.Append(ctx, "filler", i, events))
			}
			fill("small", 3000)
			if free, total, err := s.space(ctx); err != nil || free < reserve(total)*9/10 {
				t.Errorf("%d of %d bytes are left, %v", free, total, err)
			}
			if err := finish(s, "running"); err != nil {
				t.Errorf("the running one: %v", err)
			}
		})
	}
}

// After a full disk the store starts as soon as there is space; until then it
// says what to do.
func TestStartAfterAFullDisk(t *testing.T) {
	disk := testkit.SmallDisk(t, "64m")
	ctx := context.Background()
	dir := filepath.Join(disk, "data")
	s := testkit.Must(Open(ctx, Options{Dir: dir}))(t)
	running(t, s, "left")
	fillWithMedia(t, s)
	filler := testkit.FillDisk(t, disk)
	if err := s.Ping(ctx); err == nil {
		t.Error("a store on a full disk is ready")
	}
	testkit.NoError(t, s.Close())
	_, err := Open(ctx, Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "is full") || !strings.Contains(hint.Of(err), "hubbub store purge") {
		t.Fatalf("on a full disk: %v", err)
	}
	info := testkit.Must(os.Stat(filler))(t)
	testkit.NoError(t, os.Truncate(filler, info.Size()-4<<20))
	s = open(t, dir)
	if err := finish(s, "left"); err != nil {
		t.Errorf("with 4 MiB free: %v", err)
	}
	if err := s.Create(ctx, record("new"), "secret"); !Full(err) {
		t.Errorf("a new stream in the reserve: %v", err)
	}
	testkit.NoError(t, os.Remove(filler))
	if err := s.Create(ctx, record("new"), "secret"); err != nil {
		t.Errorf("with space: %v", err)
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("with space: %v", err)
	}
}

// A store whose write failed writes again when the disk has space, without a
// restart of the process.
func TestStoreRecoversFromAFullDisk(t *testing.T) {
	disk := testkit.SmallDisk(t, "64m")
	ctx := context.Background()
	s := open(t, filepath.Join(disk, "data"))
	running(t, s, "before")
	running(t, s, "during")
	filler := testkit.FillDisk(t, disk)
	long := [][]byte{make([]byte, 100_000)}
	try, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := s.Append(try, "during", 0, long); err == nil {
		t.Fatal("a full disk took an event")
	}
	if err := s.embedded.Check(ctx); err == nil {
		t.Fatal("the failed write is not noticed")
	}
	if err := s.Ping(ctx); err == nil {
		t.Error("the store is ready")
	}
	testkit.NoError(t, os.Remove(filler))
	testkit.Eventually(t, "a store that is ready", func() bool { return s.Ping(ctx) == nil })
	for _, id := range []string{"before", "during"} {
		if err := finish(s, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if kept, err := s.Messages(ctx, id); err != nil || len(kept) != 1 {
			t.Errorf("%s: %d messages, %v", id, len(kept), err)
		}
	}
}

// On a full disk nothing is removed, because the embedded server would hang; what was
// to be removed can be removed when there is space.
func TestRemovalsOnAFullDisk(t *testing.T) {
	disk := testkit.SmallDisk(t, "64m")
	ctx := t.Context()
	s := open(t, filepath.Join(disk, "data"))
	const keys = 200 // what is written when all of them are removed takes more than a block of the disk
	for i := range keys {
		testkit.NoError(t, s.secrets.Put(ctx, fmt.Sprint("kk", i), []byte("12345")))
	}
	filler := testkit.FillDisk(t, disk)
	for i := range keys {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		for _, err := range []error{s.secrets.remove(attempt, fmt.Sprint("kk", i), 0), s.secrets.Purge(attempt, fmt.Sprint("kk", i))} {
			if err != nil && !Full(err) {
				t.Fatalf("removal %d: %v", i, err)
			}
		}
		cancel()
	}
	for _, k := range s.kinds {
		if err := k.to.Purge(ctx); !Full(err) {
			t.Errorf("all of %s: %v", k.Name, err)
		}
	}
	testkit.NoError(t, s.embedded.Check(ctx))
	testkit.NoError(t, os.Remove(filler))
	testkit.NoError(t, s.secrets.remove(ctx, "kk0", 0))
}

// An entry of a queue whose bytes cannot be overwritten, because the disk has no space for
// another copy of its block, can be removed when there is space. A small block needs little.
func TestErasureOnAFullDisk(t *testing.T) {
	disk := testkit.SmallDisk(t, "64m")
	ctx := t.Context()
	s := open(t, filepath.Join(disk, "data"))
	create := func(id string) Job {
		j := job(id)
		j.Request = []byte(`"` + strings.Repeat("x", 200_000) + `"`)
		testkit.NoError(t, s.CreateJob(ctx, j))
		j, _, err := s.Job(ctx, "a", id, noon)
		testkit.NoError(t, err)
		return j
	}
	fill := func() (filler string) {
		filler = testkit.FillDisk(t, disk)
		info := testkit.Must(os.Stat(filler))(t)
		testkit.NoError(t, os.Truncate(filler, info.Size()-2<<20))
		return filler
	}
	j := create("alone")
	filler := fill()
	testkit.NoError(t, s.RemoveEntry(ctx, j.Entry))
	testkit.NoError(t, os.Remove(filler))

	const jobs = 20 // half of a block
	for i := range jobs {
		j = create(fmt.Sprint("j", i))
	}
	filler = fill()
	if err := s.RemoveEntry(ctx, j.Entry); !Full(err) {
		t.Errorf("without space: %v", err)
	}
	testkit.NoError(t, os.Remove(filler))
	testkit.NoError(t, s.RemoveEntry(ctx, j.Entry))
	if n, err := s.Queued(ctx, RunQueue); n != jobs-1 || err != nil {
		t.Errorf("%d queued, %v", n, err)
	}
}

// failing is an embedded server whose calls return these errors.
type failing struct{ check, restart error }

func (f failing) Check(context.Context) error { return f.check }
func (f failing) Restart() error              { return f.restart }

// A store whose embedded server hangs is lost: nothing in this process helps.
func TestStoreWhoseServerHangsIsLost(t *testing.T) {
	for name, server := range map[string]failing{
		"in a check": {check: embedded.ErrHangs}, "in a restart": {errors.New("a failed write"), embedded.ErrHangs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, "")
			s.restartAfterFailure(server) // until it has given up
			select {
			case <-s.Lost():
			default:
				t.Fatal("the store is not lost")
			}
			if !errors.Is(s.Err(), embedded.ErrHangs) {
				t.Error(s.Err())
			}
		})
	}
}
