package store

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/testkit"
)

func job(id string) Job {
	return Job{ID: id, Account: "a", Kind: "diarize", Request: json.RawMessage(`{}`), Status: JobCreated, Created: noon, Updated: noon}
}

func next(t *testing.T, s *Store) *Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return testkit.Must(s.Next(ctx, RunQueue))(t)
}

func TestJobRecords(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if _, _, err := s.Job(ctx, "a", "j1", noon); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown job: %v", err)
		}
		for _, id := range []string{"j1", "j2"} {
			testkit.NoError(t, s.CreateJob(ctx, job(id)))
		}
		if _, _, err := s.Job(ctx, "b", "j1", noon); !errors.Is(err, ErrNotFound) {
			t.Errorf("another account's job: %v", err)
		}
		j, revision, err := s.Job(ctx, "a", "j1", noon)
		if err != nil || j.Status != JobCreated {
			t.Fatalf("%+v %v", j, err)
		}
		j.Status = JobSucceeded
		testkit.Must(s.UpdateJob(ctx, j, revision))(t)
		if _, err := s.UpdateJob(ctx, j, revision); !errors.Is(err, ErrConflict) {
			t.Errorf("a second end: %v", err)
		}
		if _, _, err := s.Job(ctx, "a", "j1", noon.Add(JobTTL)); !errors.Is(err, ErrNotFound) {
			t.Errorf("a job after its time: %v", err)
		}
		list, err := s.ListJobs(ctx, "a", noon, func(Job) bool { return true })
		if err != nil || len(list) != 2 || list[0].ID != "j2" {
			t.Errorf("%+v %v", list, err)
		}
		if _, err := s.UpdateJob(ctx, j, 0); !errors.Is(err, ErrConflict) {
			t.Errorf("a record was written again: %v", err)
		}
	})
}

// A delivery that was given back is delivered again, and one that is done is not.
func TestJobQueue(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		testkit.NoError(t, s.CreateJob(ctx, job("j1")))
		d := next(t, s)
		if d.Job.ID != "j1" || d.Job.Account != "a" {
			t.Fatalf("%+v", d.Job)
		}
		testkit.NoError(t, d.Return(0))
		queued := func(want int) {
			t.Helper()
			if n, err := s.Queued(ctx, RunQueue); n != want || err != nil {
				t.Errorf("%d queued, want %d (%v)", n, want, err)
			}
		}
		queued(1)
		if d = next(t, s); d.Job.ID != "j1" {
			t.Fatalf("%+v", d.Job)
		}
		queued(1)
		testkit.NoError(t, s.RemoveEntry(ctx, d.Job.Entry))
		queued(0)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.Next(ended, RunQueue); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// What a process had received when it was killed is delivered to the next one at
// once, and what it had not queued completely is restored from the queue.
func TestJobQueueAfterCrash(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	s := testkit.Must(Open(ctx, Options{Dir: dir}))(t)
	testkit.NoError(t, s.CreateJob(ctx, job("j1")))
	next(t, s) // neither done nor given back
	raw, err := json.Marshal(job("j2"))
	if err == nil {
		_, err = s.enqueue(ctx, RunQueue, job("j2"), raw) // without a record
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if d := next(t, s); d.Job.ID != "j1" {
		t.Errorf("%+v", d.Job)
	}
	d := next(t, s)
	if _, err := s.UpdateJob(ctx, d.Job, 0); d.Job.ID != "j2" || err != nil {
		t.Errorf("%+v %v", d.Job, err)
	}
}

// A queue whose consumer cannot be read when the embedded server starts again delivers all the same.
func TestQueueAfterRestartWithDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	testkit.NoError(t, s.CreateJob(t.Context(), job("j1")))
	testkit.NoError(t, s.embedded.Stop())
	file := filepath.Join(datafolder.Streams(dir), jobStream, "obs", string(RunQueue), "meta.inf")
	testkit.Must(os.Stat(file))(t)
	testkit.NoError(t, os.WriteFile(file, []byte("damaged"), 0o600))
	testkit.NoError(t, s.embedded.Restart())
	testkit.Eventually(t, "the job", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d, err := s.Next(ctx, RunQueue)
		return err == nil && d.Job.ID == "j1"
	})
}

// A new job has room for what is added to its record until it ends.
func TestLargeJob(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	j := job("j1")
	j.Hook = &JobHook{URL: "https://x.example/"}
	size := func() int {
		raw := testkit.Must(json.Marshal(j))(t)
		return len(raw)
	}
	request := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }
	j.Request = request(0)
	j.Request = request(maxNewJob - size())
	testkit.NoError(t, s.CreateJob(ctx, j))
	_, revision, err := s.Job(ctx, "a", "j1", noon)
	testkit.NoError(t, err)
	j.Status, j.Attempt, j.Attempts = JobRunning, strings.Repeat("n", 36), 5
	j.Progress, j.Error, j.Output = 1.0/3, strings.Repeat("e", 1000), strings.Repeat("o", 73)
	j.Hook.Tries, j.Hook.Reason, j.Hook.Next = 3, "connection_failed", noon
	if _, err := s.UpdateJob(ctx, j, revision); err != nil {
		t.Error(err)
	}
	j = job("j2")
	j.Request = request(0)
	j.Request = request(maxNewJob - size() + 1)
	if err := s.CreateJob(ctx, j); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a job that is too large: %v", err)
	}
}

// A full queue of an account takes no more jobs of it. The jobs in it can still leave it:
// their webhooks have a queue of their own.
func TestFullQueue(t *testing.T) {
	s := open(t, "")
	ctx := context.Background()
	for range maxQueued {
		testkit.Must(s.js.PublishAsync(RunQueue.subject("a"), []byte(`{}`), jetstream.WithStallWait(time.Minute)))(t)
	}
	testkit.Eventually(t, "a full queue", func() bool { // on a busy machine acknowledgements time out
		n := testkit.Must(s.Queued(ctx, RunQueue))(t)
		return n == maxQueued
	})
	if err := s.CreateJob(ctx, job("j1")); !Full(err) {
		t.Errorf("one more job: %v", err)
	}
	if err := s.QueueHook(ctx, job("j2")); err != nil {
		t.Errorf("a webhook: %v", err)
	}
	other := job("j4")
	if other.Account = "b"; s.CreateJob(ctx, other) != nil {
		t.Error("the jobs of one account exclude those of another")
	}
	testkit.NoError(t, s.RemoveEntry(ctx, next(t, s).Job.Entry))
	if err := s.CreateJob(ctx, job("j3")); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}

// What a job was to do is in its entry of the queue alone, whose bytes are overwritten.
func TestRequestIsErased(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Must(Open(t.Context(), Options{Dir: dir}))(t)
	const secret = "voiceprint-of-a-person"
	for _, id := range []string{"j1", "j2", "j3"} {
		j := job(id)
		j.Request = json.RawMessage(`"` + secret + `"`)
		testkit.NoError(t, s.CreateJob(t.Context(), j))
	}
	if err := s.CreateJob(t.Context(), job("j4")); err != nil { // keeps their file
		t.Fatal(err)
	}
	if !onDisk(t, dir, secret) {
		t.Fatal("the request is not stored")
	}
	// The first one ends, the second one is canceled before it begins, the third one
	// while a worker has it.
	for range 2 {
		d := next(t, s)
		j, revision, err := s.Job(t.Context(), "a", d.Job.ID, noon)
		if err != nil || j.Request != nil || string(d.Job.Request) != `"`+secret+`"` {
			t.Fatalf("%+v, %s (%v)", j, d.Job.Request, err)
		}
		testkit.Must(s.UpdateJob(t.Context(), d.Job, revision))(t)
		if d.Job.ID == "j1" {
			err = s.RemoveEntry(t.Context(), d.Job.Entry)
		} else if err = s.RemoveEntry(t.Context(), j.Entry); err == nil {
			err = s.RemoveEntry(t.Context(), d.Job.Entry)
		}
		if err != nil {
			t.Errorf("%s: %v", d.Job.ID, err)
		}
	}
	j, _, err := s.Job(t.Context(), "a", "j3", noon)
	if err == nil {
		err = s.RemoveEntry(t.Context(), j.Entry)
	}
	if n, failed := s.Queued(t.Context(), RunQueue); n != 1 || err != nil || failed != nil {
		t.Errorf("%d queued (%v, %v)", n, err, failed)
	}
	if onDisk(t, dir, secret) {
		t.Error("the request can be read")
	}
	testkit.NoError(t, s.Close())
	if onDisk(t, dir, secret) {
		t.Error("the request can be read after the server has ended")
	}
}
