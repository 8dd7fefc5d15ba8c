package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// JobTTL is how long the result of a job can be read after its end.
	JobTTL = 24 * time.Hour
	// jobAge is when a record is removed, counted from its last change.
	jobAge = 48 * time.Hour
	// maxJob bounds a record and a message, in bytes: an identification has up to 50
	// voiceprints. maxNewJob bounds a new job: less by what is added to its
	// record later.
	maxJob    = 256 << 10
	maxNewJob = maxJob - 8<<10
	// JobAckWait is how long a delivery that is not extended belongs to its
	// receiver: then the queue delivers it again.
	JobAckWait = 30 * time.Second
	// maxQueued bounds each queue of one account, and maxQueuedTotal both queues of all
	// accounts. The queues are bounded separately: a job that ends leaves its queue after
	// its webhook was queued.
	maxQueued      = 2_000
	maxQueuedTotal = 100_000
	// queueFull is JetStream's description of an error: maxQueued is reached.
	queueFull = "maximum messages per subject exceeded"
	// queueAge is when a job that nobody took is removed from the queue. Its
	// media have expired by then.
	queueAge = jobAge - time.Hour
	// nextWait bounds one request for the next delivery.
	nextWait = 20 * time.Second
	// moreBatch is how many deliveries More requests at once, and moreBytes after how
	// many bytes it requests no more.
	moreBatch = 100
	moreBytes = 8 << 20

	jobStream = "JOBS"
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

// Job is the record of one job. Of two concurrent changes, one is ErrConflict.
type Job struct {
	// ID is a UUID of version 7: later jobs have larger ones.
	ID      string `json:"id"`
	Account string `json:"account"`
	// Kind and Request say what to do; both are opaque to the store. Request may contain
	// personal data. Only the entry in the queue has it, whose bytes are overwritten
	// when the job ends; no record has it.
	Kind    string          `json:"kind"`
	Request json.RawMessage `json:"request,omitempty"`
	// Entry is the sequence number of the job's entry in the queue.
	Entry   uint64    `json:"entry,omitempty"`
	Status  JobStatus `json:"status"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// Attempt is the one that runs it, and Attempts how often it was begun.
	Attempt  string `json:"attempt,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	// Progress is the share of the work that is done, 0 to 1.
	Progress float64 `json:"progress,omitempty"`
	// Error is why the job failed, for the client.
	Error string `json:"error,omitempty"`
	// Output is the name of the object with the result, see JobMedia.
	Output string `json:"output,omitempty"`
	// Hook is the webhook of the job; nil = none.
	Hook *JobHook `json:"hook,omitempty"`
}

// JobHook is the state of a job's webhook.
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

// Queue is one of the two work queues.
type Queue string

// The queues: jobs to run, and webhooks to call.
const (
	RunQueue  Queue = "run"
	HookQueue Queue = "hook"
)

// subject is the subject of an account's entries in a queue, and subjects that of all of them.
func (q Queue) subject(account string) string {
	return "hubbub.jobs." + string(q) + "." + hashOf(account)
}

func (q Queue) subjects() string { return "hubbub.jobs." + string(q) + ".*" }

// Delivery is a job from a queue. The receiver ends it with RemoveEntry or Return.
type Delivery struct {
	Job   Job  // as it was queued, not its record
	Again bool // it was delivered before
	msg   jetstream.Msg
}

// Extend keeps the delivery for another JobAckWait. It must be called more often
// than that.
func (d *Delivery) Extend() error { return d.msg.InProgress() }

// Return gives the delivery back; it is delivered again after a pause.
func (d *Delivery) Return(pause time.Duration) error { return d.msg.NakWithDelay(pause) }

// setUpQueues creates the consumers of the queues, or finds those of a cluster. Those of an
// embedded store are new: so what an earlier process had received and not finished is
// delivered again at once.
func (s *Store) setUpQueues(ctx context.Context) (err error) {
	s.queues = map[Queue]jetstream.Consumer{}
	for _, q := range []Queue{RunQueue, HookQueue} {
		if !s.Shared() {
			if err = s.js.DeleteConsumer(ctx, jobStream, string(q)); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
		if s.queues[q], err = s.setUpQueue(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// setUpQueue creates the consumer of a queue, or finds it.
func (s *Store) setUpQueue(ctx context.Context, q Queue) (jetstream.Consumer, error) {
	return s.js.CreateOrUpdateConsumer(ctx, jobStream, jetstream.ConsumerConfig{
		Durable: string(q), FilterSubject: q.subjects(), AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: JobAckWait, MaxDeliver: -1, MaxAckPending: -1, Replicas: s.replicas,
	})
}

// JobMedia is the account under which the outputs of an account's jobs are
// stored as media. No API key has such an account.
func JobMedia(account string) string { return "jobs\x00" + account }

// jobKey is the key of a record.
func jobKey(account, id string) string { return hashOf(account) + "." + id }

// gone reports whether a job can no longer be read.
func (j Job) gone(now time.Time) bool { return j.Status.Over() && now.Sub(j.Updated) >= JobTTL }

// CreateJob queues a job and writes its record. The error is ErrQuota when the account's
// queue is full, Full when the store is, or ErrTooLarge. The queue comes first: a job in it runs, and whoever
// takes it writes the record if it is missing. So a crash between the two leaves no
// record of a job that never runs.
func (s *Store) CreateJob(ctx context.Context, j Job) (err error) {
	defer func() { err = s.report("create job", err) }()
	raw := encode(j)
	if len(raw) > maxNewJob {
		return ErrTooLarge
	}
	if err = s.admitRequest(ctx, len(raw), false); err != nil {
		return err
	}
	if j.Entry, err = s.enqueue(ctx, RunQueue, j, raw); err != nil {
		return err
	}
	if _, err = s.writeJob(ctx, j, 0); errors.Is(err, ErrConflict) { // who took the job has written it
		err = nil
	}
	return err
}

// writeJob writes a record over the given revision, and returns the new one.
func (s *Store) writeJob(ctx context.Context, j Job, revision uint64) (uint64, error) {
	j.Request = nil
	return s.jobs.write(ctx, jobKey(j.Account, j.ID), encode(j), revision)
}

// Job returns the record of an account's job and its revision, or ErrNotFound and the
// revision of a record that cannot be read, else 0.
func (s *Store) Job(ctx context.Context, account, id string, now time.Time) (j Job, revision uint64, err error) {
	j, revision, err = read[Job](ctx, s.jobs, jobKey(account, id))
	if err == nil && j.gone(now) {
		revision, err = 0, ErrNotFound
	}
	return j, revision, s.report("get job", err)
}

// UpdateJob writes a record over the given revision, 0 if there must be none, and returns
// the new one. ErrConflict says that another writer came first.
func (s *Store) UpdateJob(ctx context.Context, j Job, revision uint64) (uint64, error) {
	revision, err := s.writeJob(ctx, j, revision)
	return revision, s.report("update job", err)
}

// ListJobs returns the jobs of an account that match, newest first.
func (s *Store) ListJobs(ctx context.Context, account string, now time.Time, match func(Job) bool) ([]Job, error) {
	var found []Job
	err := each(ctx, s.jobs, hashOf(account)+".*", func(_ string, j Job) {
		if !j.gone(now) && match(j) {
			found = append(found, j)
		}
	})
	slices.SortFunc(found, func(a, b Job) int { return strings.Compare(b.ID, a.ID) })
	return found, s.report("list jobs", err)
}

// enqueue adds an entry to a queue, once for each job, and returns its sequence number.
func (s *Store) enqueue(ctx context.Context, q Queue, j Job, raw []byte) (entry uint64, err error) {
	entry, err = s.publish(ctx, q.subject(j.Account), raw, jetstream.WithMsgID(string(q)+" "+j.ID))
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.Description == queueFull {
		err = fmt.Errorf("%w: %w", ErrQuota, err)
	}
	return entry, err
}

// QueueHook queues the webhook of a job. A second call for the same job within two
// minutes changes nothing.
func (s *Store) QueueHook(ctx context.Context, j Job) error {
	_, err := s.enqueue(ctx, HookQueue, j, encode(Job{ID: j.ID, Account: j.Account}))
	return s.report("queue webhook", err)
}

// RemoveEntry removes an entry from its queue and overwrites its bytes. It may have been
// removed before.
func (s *Store) RemoveEntry(ctx context.Context, entry uint64) error {
	err := retry(ctx, func(ctx context.Context) error {
		err := s.queued.SecureDeleteMsg(ctx, entry)
		if err == nil || transient(err) {
			return err
		}
		if _, gone := s.queued.GetMsg(ctx, entry); errors.Is(gone, jetstream.ErrMsgNotFound) {
			return nil
		}
		return err
	})
	return s.report("remove queue entry", err)
}

// Next waits for the next delivery of a queue until ctx ends. Each delivery belongs to
// one receiver at a time, of all nodes.
func (s *Store) Next(ctx context.Context, q Queue) (*Delivery, error) {
	for {
		wait, cancel := context.WithTimeout(ctx, nextWait)
		msg, err := s.queues[q].Next(jetstream.FetchContext(wait))
		cancel()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				err = msg.Nak()
			}
			return nil, errors.Join(ctx.Err(), err)
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
			continue
		case errors.Is(err, nats.ErrNoResponders): // a NATS server that starts again leaves out a consumer that it cannot read
			_, missing := s.setUpQueue(ctx, q)
			return nil, s.report("next job", errors.Join(err, missing))
		case err != nil:
			return nil, s.report("next job", err)
		}
		d, err := newDelivery(msg)
		return d, s.report("next job", err)
	}
}

func newDelivery(msg jetstream.Msg) (*Delivery, error) {
	d := &Delivery{msg: msg}
	meta, err := msg.Metadata()
	if err == nil {
		err = json.Unmarshal(msg.Data(), &d.Job)
	}
	if err != nil {
		_ = msg.Term() // nobody can read it
		return nil, err
	}
	d.Job.Entry, d.Again = meta.Sequence.Stream, meta.NumDelivered > 1
	return d, nil
}

// More returns the deliveries that follow, at most so many, without waiting. Those that
// came before an error are returned with it.
func (s *Store) More(q Queue, most int) (list []*Delivery, err error) {
	for size, n := 0, moreBatch; n == moreBatch && len(list) < most && size < moreBytes && err == nil; {
		batch, failed := s.queues[q].FetchNoWait(min(moreBatch, most-len(list)))
		if failed != nil {
			return list, s.report("next jobs", failed)
		}
		n = 0
		for msg := range batch.Messages() {
			n, size = n+1, size+len(msg.Data())
			if d, invalid := newDelivery(msg); invalid == nil {
				list = append(list, d)
			}
		}
		err = batch.Error()
	}
	return list, s.report("next jobs", err)
}

// Queued returns how many entries a queue has: those that wait, and those that a receiver
// has. NATS does not tell the latter from those that were given back.
func (s *Store) Queued(ctx context.Context, q Queue) (n int, err error) {
	info, err := s.queued.Info(ctx, jetstream.WithSubjectFilter(q.subjects()))
	if err != nil {
		return 0, s.report("count jobs", err)
	}
	for _, entries := range info.State.Subjects {
		n += int(entries)
	}
	return n, nil
}
