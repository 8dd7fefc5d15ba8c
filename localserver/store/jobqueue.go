package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// JobAckWait is how long a delivery that is not extended belongs to its
	// receiver: then the queue delivers it again.
	JobAckWait = 30 * time.Second
	// maxQueued bounds the jobs that wait, of all accounts together.
	maxQueued = 10_000
	// queueAge is when a job that nobody took is removed from the queue. Its
	// media have expired by then.
	queueAge = jobAge - time.Hour
	// nextWait bounds one request for the next delivery.
	nextWait = 20 * time.Second

	jobStream = "JOBS"
)

// Queue is one of the two work queues.
type Queue string

// The queues: jobs to run, and notifications to send.
const (
	RunQueue  Queue = "run"
	HookQueue Queue = "hook"
)

func (q Queue) subject() string { return "hubbub.jobs." + string(q) }

// JobQueue distributes work among the nodes. Each delivery belongs to one
// receiver at a time.
type JobQueue interface {
	// Next waits for the next delivery of a queue until ctx ends.
	Next(ctx context.Context, q Queue) (*Delivery, error)
	// More returns the deliveries that follow, at most so many, without waiting.
	More(q Queue, most int) ([]*Delivery, error)
	// QueueHook queues the notification of a job. A second call for the same job
	// within two minutes changes nothing.
	QueueHook(ctx context.Context, j Job) error
	// Queued returns how many deliveries of a queue wait for a receiver.
	Queued(ctx context.Context, q Queue) (int, error)
}

var _ JobQueue = (*Store)(nil)

// Delivery is a job from a queue. The receiver ends it with Done or Return.
type Delivery struct {
	Job Job // as it was queued, not its record
	msg jetstream.Msg
}

// Extend keeps the delivery for another JobAckWait. It must be called more often
// than that.
func (d *Delivery) Extend() error { return d.msg.InProgress() }

// Done removes the delivery from the queue.
func (d *Delivery) Done(ctx context.Context) error { return d.msg.DoubleAck(ctx) }

// Return gives the delivery back; it is delivered again after a pause.
func (d *Delivery) Return(pause time.Duration) error { return d.msg.NakWithDelay(pause) }

// setUpJobs creates the bucket of records and the queues, or finds them.
func (s *Store) setUpJobs(ctx context.Context, storage jetstream.StorageType) (err error) {
	s.jobs, err = s.newBucket(ctx, jetstream.KeyValueConfig{
		Bucket: "jobs", Storage: storage, TTL: jobAge, MaxValueSize: maxJob,
	})
	if err != nil {
		return err
	}
	_, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: jobStream, Subjects: []string{"hubbub.jobs.*"}, Storage: storage, Replicas: s.replicas,
		Retention: jetstream.WorkQueuePolicy, MaxAge: queueAge, MaxMsgs: maxQueued, MaxMsgSize: maxJob,
		Discard: jetstream.DiscardNew,
	})
	if err != nil {
		return err
	}
	if s.queues == nil {
		s.queues = map[Queue]jetstream.Consumer{}
	}
	for _, q := range []Queue{RunQueue, HookQueue} {
		s.queues[q], err = s.js.CreateOrUpdateConsumer(ctx, jobStream, jetstream.ConsumerConfig{
			Durable: string(q), FilterSubject: q.subject(), AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: JobAckWait, MaxDeliver: -1, MaxAckPending: -1, Replicas: s.replicas,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetDeliveries makes the queues of an embedded store deliver again at once
// what an earlier process had received and not finished.
func (s *Store) forgetDeliveries(ctx context.Context) error {
	for _, q := range []Queue{RunQueue, HookQueue} {
		err := s.js.DeleteConsumer(ctx, jobStream, string(q))
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return nil
}

// CreateJob queues a job and writes its record. The queue comes first: a job in
// it runs, and whoever takes it writes the record if it is missing. So a crash
// between the two leaves no record of a job that never runs.
func (s *Store) CreateJob(ctx context.Context, j Job) error {
	return s.report("create job", s.createJob(ctx, j))
}

func (s *Store) createJob(ctx context.Context, j Job) error {
	if err := s.admit(ctx, sessionSpace, forStreams); err != nil {
		return err
	}
	raw, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := s.enqueue(ctx, RunQueue, j.ID, raw); err != nil {
		return err
	}
	err = retry(ctx, func(ctx context.Context) error {
		_, err := s.jobs.Create(ctx, jobKey(j.Account, j.ID), raw)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyExists) { // an earlier attempt, or who took the job
		err = nil
	}
	return err
}

// enqueue adds a message to a queue, once for each id.
func (s *Store) enqueue(ctx context.Context, q Queue, id string, raw []byte) error {
	return retry(ctx, func(ctx context.Context) error {
		_, err := s.js.Publish(ctx, q.subject(), raw, jetstream.WithMsgID(string(q)+" "+id))
		return storeError(err)
	})
}

// QueueHook queues the notification of a job.
func (s *Store) QueueHook(ctx context.Context, j Job) error {
	raw, err := json.Marshal(Job{ID: j.ID, Account: j.Account})
	if err == nil {
		err = s.enqueue(ctx, HookQueue, j.ID, raw)
	}
	return s.report("queue webhook", err)
}

// Next waits for the next delivery.
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
		case err != nil:
			return nil, s.report("next job", err)
		}
		d, err := newDelivery(msg)
		return d, s.report("next job", err)
	}
}

func newDelivery(msg jetstream.Msg) (*Delivery, error) {
	d := &Delivery{msg: msg}
	if err := json.Unmarshal(msg.Data(), &d.Job); err != nil {
		_ = msg.Term() // nobody can read it
		return nil, err
	}
	return d, nil
}

// More returns the deliveries that follow. Those that came before an error are
// returned with it.
func (s *Store) More(q Queue, most int) (list []*Delivery, err error) {
	batch, err := s.queues[q].FetchNoWait(most)
	if err != nil {
		return nil, s.report("next jobs", err)
	}
	for msg := range batch.Messages() {
		if d, invalid := newDelivery(msg); invalid == nil {
			list = append(list, d)
		}
	}
	return list, s.report("next jobs", batch.Error())
}

// RestoreJob writes the record of a job that was queued and has none.
func (s *Store) RestoreJob(ctx context.Context, j Job) (revision uint64, err error) {
	raw, err := json.Marshal(j)
	if err == nil {
		revision, err = s.jobs.Create(ctx, jobKey(j.Account, j.ID), raw)
	}
	if errors.Is(err, jetstream.ErrKeyExists) {
		err = ErrConflict
	}
	return revision, s.report("restore job", err)
}

// Queued returns how many deliveries wait.
func (s *Store) Queued(ctx context.Context, q Queue) (int, error) {
	info, err := s.queues[q].Info(ctx)
	if err != nil {
		return 0, s.report("count jobs", err)
	}
	return int(info.NumPending), nil
}
