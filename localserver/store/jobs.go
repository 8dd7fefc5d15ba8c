package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// JobTTL is how long the result of a job can be read after its end.
	JobTTL = 24 * time.Hour
	// jobAge is when a record is removed, counted from its last change.
	jobAge = 48 * time.Hour
	// maxJob bounds a job, in bytes: an identification has up to 50 reduced
	// voiceprints.
	maxJob = 256 << 10
)

// JobStatus is the state of a job: created, running, then succeeded, failed or
// canceled. A job whose server stopped is pending until it runs again.
type JobStatus string

// The statuses.
const (
	JobPending   JobStatus = "pending"
	JobCreated   JobStatus = "created"
	JobRunning   JobStatus = "running"
	JobSucceeded JobStatus = "succeeded"
	JobFailed    JobStatus = "failed"
	JobCanceled  JobStatus = "canceled"
)

// Over reports whether the job has ended.
func (s JobStatus) Over() bool { return s == JobSucceeded || s == JobFailed || s == JobCanceled }

// Job is the record of one job.
type Job struct {
	// ID is a UUID of version 7: later jobs have larger ones.
	ID      string `json:"id"`
	Account string `json:"account"`
	// Kind and Request say what to do; both are opaque to the store. Request may
	// contain personal data and is deleted when the job ends.
	Kind    string          `json:"kind"`
	Request json.RawMessage `json:"request,omitempty"`
	Status  JobStatus       `json:"status"`
	Created time.Time       `json:"created"`
	Updated time.Time       `json:"updated"`
	// Node and Attempt say who runs it, and Attempts how often it was begun.
	Node     string `json:"node,omitempty"`
	Attempt  string `json:"attempt,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	// Progress is the share of the work that is done, 0 to 1.
	Progress float64 `json:"progress,omitempty"`
	// Error is why the job failed, for the client.
	Error string `json:"error,omitempty"`
	// Output is the name of the object with the result, see JobMedia.
	Output string `json:"output,omitempty"`
	// Hook is the notification of the job's end; nil = none.
	Hook *JobHook `json:"hook,omitempty"`
}

// JobHook is the state of the notification of a job's end.
type JobHook struct {
	URL        string `json:"url"`
	StatusOnly bool   `json:"statusOnly,omitempty"`
	// Tries is how many requests were made, Reason why the last one failed, and
	// Next when the next one is due.
	Tries  int       `json:"tries,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Next   time.Time `json:"next,omitzero"`
	// Done says that no more requests are made.
	Done bool `json:"done,omitempty"`
}

// Jobs stores the records of jobs. Of two concurrent changes of one record, one
// is ErrConflict.
type Jobs interface {
	// CreateJob queues a job and writes its record. It returns ErrFull when the
	// queue or the store is full.
	CreateJob(ctx context.Context, j Job) error
	// Job returns the record of an account's job and its revision, or
	// ErrNotFound.
	Job(ctx context.Context, account, id string, now time.Time) (Job, uint64, error)
	// ListJobs returns the jobs of an account that match, newest first.
	ListJobs(ctx context.Context, account string, now time.Time, match func(Job) bool) ([]Job, error)
	// UpdateJob replaces a record that has the given revision and returns the
	// new one. ErrConflict says that another writer came first.
	UpdateJob(ctx context.Context, j Job, revision uint64) (uint64, error)
	// RestoreJob writes the record of a job that was queued and has none, and
	// returns its revision. ErrConflict says that it has one.
	RestoreJob(ctx context.Context, j Job) (uint64, error)
}

var _ Jobs = (*Store)(nil)

// JobMedia is the account under which the outputs of an account's jobs are
// stored as media. No API key has such an account.
func JobMedia(account string) string { return "jobs\x00" + account }

// jobKey is the key of a record.
func jobKey(account, id string) string { return hashOf(account) + "." + id }

// gone reports whether a job can no longer be read.
func (j Job) gone(now time.Time) bool { return j.Status.Over() && now.Sub(j.Updated) >= JobTTL }

// Job returns the record of an account's job.
func (s *Store) Job(ctx context.Context, account, id string, now time.Time) (j Job, revision uint64, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		j, revision, err = s.job(ctx, jobKey(account, id))
		return err
	})
	if err == nil && j.gone(now) {
		err = ErrNotFound
	}
	return j, revision, s.report("get job", err)
}

func (s *Store) job(ctx context.Context, key string) (j Job, revision uint64, err error) {
	entry, err := s.jobs.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, ErrNotFound):
		return j, 0, ErrNotFound
	case err != nil:
		return j, 0, err
	}
	err = json.Unmarshal(entry.Value(), &j)
	return j, entry.Revision(), err
}

// UpdateJob replaces a record. An attempt whose answer was lost counts as
// written if the record reads as it was to be.
func (s *Store) UpdateJob(ctx context.Context, j Job, revision uint64) (uint64, error) {
	raw, err := json.Marshal(j)
	if err != nil {
		return 0, fmt.Errorf("job %s: %w", j.ID, err)
	}
	key, attempted := jobKey(j.Account, j.ID), false
	var next uint64
	err = retry(ctx, func(ctx context.Context) error {
		next, err = s.jobs.Update(ctx, key, raw, revision)
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			attempted = true
			return err
		}
		if !attempted {
			return ErrConflict
		}
		entry, err := s.jobs.Get(ctx, key)
		if err != nil {
			return err
		}
		if string(entry.Value()) != string(raw) {
			return ErrConflict
		}
		next = entry.Revision()
		return nil
	})
	return next, s.report("update job", err)
}

// ListJobs returns the jobs of an account.
func (s *Store) ListJobs(ctx context.Context, account string, now time.Time, match func(Job) bool) ([]Job, error) {
	var found []Job
	err := eachEntry(ctx, s.jobs.kv, []string{hashOf(account) + ".*"}, 0, func(entry jetstream.KeyValueEntry) error {
		var j Job
		if err := json.Unmarshal(entry.Value(), &j); err != nil {
			return err
		}
		if !j.gone(now) && match(j) {
			found = append(found, j)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b Job) int { return strings.Compare(b.ID, a.ID) })
	return found, s.report("list jobs", err)
}
