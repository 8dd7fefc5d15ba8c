package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/localserver/store/backup"
	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// filled is a store on disk with everything in it, and what it has to read.
func filled(t *testing.T, dir string) (s *Store, read func(*testing.T, *Store) string) {
	t.Helper()
	ctx := context.Background()
	s = open(t, dir)
	for i := range 20 {
		id := fmt.Sprintf("s%d", i)
		testkit.NoError(t, errors.Join(s.Create(ctx, record(id), "token-of-"+id),
			s.Begin(ctx, id, "token-of-"+id, Claim{"n", "x"}, noon),
			s.Append(ctx, id, 0, [][]byte{[]byte("first of " + id), []byte("second")}),
			s.PutSnapshot(ctx, id, []byte("an old one"), 0),
			s.PutSnapshot(ctx, id, []byte("voices of "+id), 0)))
		if i%2 == 0 {
			testkit.NoError(t, s.Finish(ctx, id, Done, noon.Add(time.Minute), "over"))
		}
	}
	now := time.Now()
	put(t, s, "a", "replaced", []byte("the old object"), now)
	put(t, s, "a", "replaced", bytes.Repeat([]byte("the new object\n"), 50_000), now)
	put(t, s, "a", "small", []byte("x"), now)
	secret := testkit.Must(s.Secret(ctx, "of-the-test"))(t)
	testkit.NoError(t, os.MkdirAll(filepath.Join(dir, "keys"), 0o700))
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "keys", "one.pem"), []byte("a signing key"), 0o600))

	return s, func(t *testing.T, s *Store) string {
		t.Helper()
		var out bytes.Buffer
		for i := range 20 {
			id := fmt.Sprintf("s%d", i)
			rec, err := s.Get(ctx, id)
			rec.Key = "" // Renew does not change anything else that is read
			events, err2 := s.Messages(ctx, id)
			voices, _, err3 := s.Snapshot(ctx, id)
			fmt.Fprintf(&out, "%s %s %v %v %s %v %s %v\n", id, rec.Status, rec.Started, err, events, err2, voices, err3)
		}
		for _, name := range []string{"replaced", "small"} {
			body, info := get(t, s, "a", name, now), testkit.Must(s.StatMedia(ctx, "a", name, now))(t)
			fmt.Fprintf(&out, "%s %d %s %v\n", name, len(body), info.Sum, bytes.HasPrefix(body, []byte("the new")))
		}
		again, err := s.Secret(ctx, "of-the-test")
		fmt.Fprintln(&out, bytes.Equal(secret, again), err)
		return out.String()
	}
}

// A backup of a store that is written meanwhile has everything that was
// acknowledged before, also records that are replaced while it is made.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	s, read := filled(t, dir)
	want := read(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var renewed atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			if err := s.Renew(ctx, fmt.Sprintf("s%d", 1+2*(i%10))); err == nil {
				renewed.Add(1)
			}
		}
	}()
	testkit.Eventually(t, "renewals", func() bool { return renewed.Load() >= 20 })
	var raw bytes.Buffer
	testkit.NoError(t, s.Backup(context.Background(), &raw))
	cancel()
	<-done
	file := filepath.Join(t.TempDir(), "backup")
	testkit.NoError(t, os.WriteFile(file, raw.Bytes(), 0o600))
	to := filepath.Join(t.TempDir(), "new")
	testkit.NoError(t, backup.Restore(file, to, slog.New(slog.DiscardHandler)))
	if reports, err := datafolder.Check(to); err != nil || slices.ContainsFunc(reports, func(r datafolder.Report) bool { return r.Damaged > 0 }) {
		t.Errorf("%+v %v", reports, err)
	}
	if key, err := os.ReadFile(filepath.Join(to, "keys", "one.pem")); string(key) != "a signing key" || err != nil {
		t.Errorf("%q %v", key, err)
	}
	if left := testkit.Files(t, to, ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	restored := open(t, to)
	if got := read(t, restored); got != want {
		t.Errorf("restored:\n%s\nbefore:\n%s", got, want)
	}
	// It can be used like any other.
	testkit.NoError(t, restored.Append(context.Background(), "s1", 2, [][]byte{[]byte("third")}))
	testkit.NoError(t, restored.Finish(context.Background(), "s1", Done, noon, ""))
	if got := read(t, s); got != want {
		t.Errorf("the backup has changed the store:\n%s", got)
	}
}

func TestBackupOfNothing(t *testing.T) {
	dir := t.TempDir()
	if err := BackupFolder(context.Background(), dir, io.Discard); hint.Of(err) == "" {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// during calls f once, when what is written contains a text.
type during struct {
	io.Writer
	text string
	f    func()
}

func (d *during) Write(p []byte) (int, error) {
	if d.f != nil && bytes.Contains(p, []byte(d.text)) {
		d.f()
		d.f = nil
	}
	return d.Writer.Write(p)
}

// restoredAfter makes a backup, calls f when it contains a text, and restores it.
func (s *Store) restoredAfter(t *testing.T, text string, f func()) *Store {
	t.Helper()
	var raw bytes.Buffer
	out := &during{&raw, text, f}
	if err := s.Backup(t.Context(), out); err != nil || out.f != nil {
		t.Fatal(err)
	}
	file, to := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "new")
	testkit.NoError(t, os.WriteFile(file, raw.Bytes(), 0o600))
	testkit.NoError(t, backup.Restore(file, to, slog.New(slog.DiscardHandler)))
	return open(t, to)
}

// Media that are replaced, deleted or swept while a backup is made are in it as they were
// or as they are.
func TestBackupOfReplacedMedia(t *testing.T) {
	s, _ := filled(t, t.TempDir())
	ctx := t.Context()
	restored := s.restoredAfter(t, "streams/KV_secrets", func() { // behind the records of media, before their bytes
		w := testkit.Must(s.CreateMedia(ctx, "a", "replaced", time.Now))(t)
		testkit.Must(w.Commit([]byte("the newest object")))(t)
		testkit.NoError(t, s.DeleteMedia(ctx, "a", "small", time.Now()))
		testkit.Must(s.SweepMedia(ctx, time.Now().Add(2*readGrace)))(t)
	})
	for name, size := range map[string]int{"replaced": 750_000, "small": 1} {
		testkit.Equal(t, len(get(t, restored, "a", name, time.Now())), size, "bytes of", name)
	}
	if n, err := s.SweepMedia(ctx, time.Now().Add(2*readGrace)); n != 2 || err != nil {
		t.Errorf("%d blobs are removed after the backup, %v", n, err)
	}
}

// A job that ends while a backup is made has ended in it, or is in its queue.
func TestBackupOfEndingJob(t *testing.T) {
	dir := t.TempDir()
	s, _ := filled(t, dir)
	ctx := context.Background()
	testkit.NoError(t, s.CreateJob(ctx, job("j1")))
	end := func() {
		j, revision, err := s.Job(ctx, "a", "j1", noon)
		testkit.NoError(t, err)
		j.Status = JobSucceeded
		testkit.Must(s.UpdateJob(ctx, j, revision))(t)
		testkit.NoError(t, s.RemoveEntry(ctx, next(t, s).Job.Entry))
	}
	restored := s.restoredAfter(t, "streams/KV_sessions", end) // behind the records of jobs, before the events
	j, _, err := restored.Job(ctx, "a", "j1", noon)
	testkit.NoError(t, err)
	if n, err := restored.Queued(ctx, RunQueue); err != nil || !j.Status.Over() && n == 0 {
		t.Errorf("the job is %s and in no queue (%v)", j.Status, err)
	}
}
