package jobs

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// oneRecord is a store of the record of one job.
type oneRecord struct {
	Store
	mu       sync.Mutex
	job      store.Job
	revision uint64
	unread   bool // until it is written
}

func (s *oneRecord) Job(context.Context, string, string, time.Time) (store.Job, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unread {
		return store.Job{}, s.revision, store.ErrNotFound
	}
	return s.job, s.revision, nil
}

func (s *oneRecord) UpdateJob(_ context.Context, j store.Job, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision != s.revision {
		return 0, store.ErrConflict
	}
	s.job, s.unread = j, false
	s.revision++
	return s.revision, nil
}

// A job that the queue delivers a second time stays with the worker that renews its claim, and is another one's after
// claimTime without a renewal.
func TestJobOfAWorkerThatLives(t *testing.T) {
	for _, renews := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &oneRecord{job: newJob("a", "x")}
			d := &store.Delivery{Job: s.job, Again: true}
			a := testkit.Must(runner(t, s, 0, nil).claim(d))(t)
			if renews {
				time.AfterFunc(renewInterval, func() { testkit.NoError(t, a.write(t.Context())) })
			}
			begun := time.Now()
			_, err := runner(t, s, 0, nil).claim(d)
			if want := map[bool]error{true: errTaken}[renews]; err != want || time.Since(begun) != claimTime {
				t.Errorf("renews %v: %v after %v", renews, err, time.Since(begun))
			}
		})
	}
}

// A Runner that ends does not wait for the worker of a job, and leaves the job to others.
func TestEndWhileAWorkerIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	submit(t, s, newJob("a", "x"))
	d := testkit.Must(s.Next(t.Context(), store.RunQueue))(t)
	a := testkit.Must(runner(t, s, 0, nil).claim(d))(t)
	testkit.NoError(t, d.Return(0))
	d = testkit.Must(s.Next(t.Context(), store.RunQueue))(t)
	r := runner(t, s, 0, nil)
	r.Stop()
	r.take(d)
	d = testkit.Must(s.Next(t.Context(), store.RunQueue))(t)
	if j, revision, err := s.Job(t.Context(), "a", d.Job.ID, time.Now()); err != nil || revision != a.revision {
		t.Errorf("%+v (%v)", j, err)
	}
}

// TestRecordThatCannotBeRead: the queue has the job, so it runs.
func TestRecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	d := &store.Delivery{Job: newJob("a", "x")}
	a, err := runner(t, &oneRecord{unread: true, revision: 7}, 0, nil).claim(d)
	if err != nil || a.job.ID != d.Job.ID || a.job.Status != store.JobRunning {
		t.Errorf("%+v, %v", a.job, err)
	}
}

// silent is a store whose queues do not respond.
type silent struct {
	*store.Store
	calls atomic.Int32
}

func (s *silent) Next(_ context.Context, q store.Queue) (*store.Delivery, error) {
	if q == store.RunQueue {
		s.calls.Add(1)
	}
	return nil, errors.New("no response")
}

// TestQueueThatDoesNotRespond: it is logged once, not once for each worker.
func TestQueueThatDoesNotRespond(t *testing.T) {
	t.Parallel()
	const workers = 4
	s, log := &silent{Store: openStore(t)}, &bytes.Buffer{}
	r := runner(t, s, workers, log)
	testkit.Eventually(t, "calls of the workers", func() bool { return s.calls.Load() > workers })
	r.Close()
	if got := strings.Count(log.String(), "no jobs can be taken"); got != 1 {
		t.Errorf("logged %d times: %s", got, log)
	}
}

// lossy is a store of which the response to one update is lost.
type lossy struct {
	*store.Store
	lose bool
}

func (l *lossy) UpdateJob(ctx context.Context, j store.Job, revision uint64) (uint64, error) {
	next, err := l.Store.UpdateJob(ctx, j, revision)
	if l.lose {
		l.lose = false
		return 0, context.DeadlineExceeded
	}
	return next, err
}

// TestLostResponse: a claim whose renewal was written, but not confirmed, lasts, unless
// the job was canceled.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	s := &lossy{Store: openStore(t)}
	r := runner(t, s, 0, nil)
	for name, want := range map[string]store.JobStatus{"renewed": store.JobSucceeded, "canceled": store.JobCanceled} {
		id := submit(t, s, newJob("a", "x"))
		d := testkit.Must(s.Next(t.Context(), store.RunQueue))(t)
		a := testkit.Must(r.claim(d))(t)
		s.lose, a.job.Progress = true, 0.5
		if err := a.write(t.Context()); err == nil {
			t.Fatal("the response was not lost")
		}
		if want == store.JobCanceled {
			cancelRecord(t, s, id)
		}
		a.finish(store.JobSucceeded, "output", "")
		if j, _, err := s.Job(t.Context(), "a", id, time.Now()); err != nil || j.Status != want {
			t.Errorf("%s: %+v (%v)", name, j, err)
		}
	}
	if n, err := s.Queued(t.Context(), store.RunQueue); n != 0 || err != nil {
		t.Errorf("%d jobs are still queued (%v)", n, err)
	}
}
