package store

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func job(id string) Job {
	return Job{ID: id, Account: "a", Kind: "diarize", Request: json.RawMessage(`{}`), Status: JobCreated, Created: noon, Updated: noon}
}

func next(t *testing.T, s *Store) *Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	d, err := s.Next(ctx, RunQueue)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestJobRecords(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if _, _, err := s.Job(ctx, "a", "j1", noon); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown job: %v", err)
		}
		for _, id := range []string{"j1", "j2"} {
			if err := s.CreateJob(ctx, job(id)); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.Job(ctx, "b", "j1", noon); !errors.Is(err, ErrNotFound) {
			t.Errorf("another account's job: %v", err)
		}
		j, revision, err := s.Job(ctx, "a", "j1", noon)
		if err != nil || j.Status != JobCreated {
			t.Fatalf("%+v %v", j, err)
		}
		j.Status = JobSucceeded
		if _, err := s.UpdateJob(ctx, j, revision); err != nil {
			t.Fatal(err)
		}
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
		if _, err := s.RestoreJob(ctx, j); !errors.Is(err, ErrConflict) {
			t.Errorf("a record was written again: %v", err)
		}
	})
}

// A delivery that was given back is delivered again, and one that is done is not.
func TestJobQueue(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if err := s.CreateJob(ctx, job("j1")); err != nil {
			t.Fatal(err)
		}
		d := next(t, s)
		if d.Job.ID != "j1" || d.Job.Account != "a" {
			t.Fatalf("%+v", d.Job)
		}
		if err := d.Return(0); err != nil {
			t.Fatal(err)
		}
		if d = next(t, s); d.Job.ID != "j1" {
			t.Fatalf("%+v", d.Job)
		}
		if err := d.Done(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Queued(ctx, RunQueue); n != 0 || err != nil {
			t.Errorf("%d queued (%v)", n, err)
		}
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
	s, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateJob(ctx, job("j1")); err != nil {
		t.Fatal(err)
	}
	next(t, s) // neither done nor given back
	raw, err := json.Marshal(job("j2"))
	if err == nil {
		err = s.enqueue(ctx, RunQueue, "j2", raw) // without a record
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if d := next(t, s); d.Job.ID != "j1" {
		t.Errorf("%+v", d.Job)
	}
	d := next(t, s)
	if _, err := s.RestoreJob(ctx, d.Job); d.Job.ID != "j2" || err != nil {
		t.Errorf("%+v %v", d.Job, err)
	}
}
