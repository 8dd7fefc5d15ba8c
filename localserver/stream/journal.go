package stream

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/recovered"
)

const (
	// maxWaiting bounds the events of a stream that wait for the store. Events
	// beyond it are counted as lost, and the record of the stream reads error.
	maxWaiting = 10000
	// batchBytes is how many bytes of events one call of the store takes: a message of NATS
	// has 1 MiB at most.
	batchBytes = 512 << 10
	// retryInterval is how long after a failure the store is called again: a client that
	// waits for the end of its stream has some attempts.
	retryInterval = 500 * time.Millisecond
	// renewInterval keeps the record of a running stream from expiring.
	renewInterval = time.Hour
	// progressInterval is how often watchers are told the progress of a stream.
	progressInterval = 500 * time.Millisecond
	// maxErrors bounds the error messages that wait to be published.
	maxErrors = 16
)

// journal writes the events of one stream to the store and then the end of its record,
// independently of the client: a store that is slow or unavailable does not delay the
// stream.
type journal struct {
	store    Store
	id       string
	losses   *atomic.Int64 // counts what lost counts, of all streams
	log      *slog.Logger
	received atomic.Int64 // audio, a time.Duration

	mu       sync.Mutex
	waiting  [][]byte // the store may have the first ones already
	stored   int
	lost     int
	errors   []string // for the watchers, not stored
	fenced   bool     // other nodes have ended the stream in the store: nothing can follow
	closing  bool     // no more events follow, and end is what the record is to say
	end      ending
	at       time.Time // of the end
	recorded bool      // the store has everything; end is what the record says

	wake   chan struct{}   // something waits, or the stream ends
	done   chan struct{}   // closed when run has returned
	ctx    context.Context // canceled by handOver
	cancel context.CancelFunc
}

func newJournal(s Store, id string, losses *atomic.Int64, log *slog.Logger) *journal {
	ctx, cancel := context.WithCancel(context.Background())
	return &journal{store: s, id: id, losses: losses, log: log,
		wake: make(chan struct{}, 1), done: make(chan struct{}), ctx: ctx, cancel: cancel}
}

// add takes one event. It never waits.
func (j *journal) add(raw []byte) {
	j.mu.Lock()
	if len(j.waiting) < maxWaiting && !j.fenced {
		j.waiting = append(j.waiting, raw)
	} else {
		j.lose(1)
	}
	j.mu.Unlock()
	notify(j.wake)
}

// lose counts events that will not be stored. The caller holds mu.
func (j *journal) lose(events int) {
	j.lost += events
	j.losses.Add(int64(events))
}

// addError takes an error message for the watchers, which is published with the next
// progress. It reports whether there was room for it.
func (j *journal) addError(message string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.errors) >= maxErrors {
		return false
	}
	j.errors = append(j.errors, message)
	return true
}

// notify signals a channel of capacity 1 without waiting.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// waitFor waits until done is closed, or ctx ends.
func waitFor(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// finish says that no more events follow, and what the record is to say when all of them
// are stored, so that whoever reads done finds them.
func (j *journal) finish(end ending, at time.Time) {
	j.mu.Lock()
	j.closing, j.end, j.at = true, end, at
	j.mu.Unlock()
	notify(j.wake)
}

// handOver ends run at once and returns what the store is not known to have, for the
// outbox, which continues; nil if it has everything.
func (j *journal) handOver() *PendingFinish {
	j.cancel()
	<-j.done
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.recorded {
		return nil
	}
	j.loseEnd()
	p := &PendingFinish{Stream: j.id, First: j.stored, Status: j.end.status, Cause: j.end.cause, At: j.at}
	for _, raw := range j.waiting {
		p.Events = append(p.Events, string(raw))
	}
	j.waiting = nil
	return p
}

// run writes to the store until it has everything after finish, or until handOver.
func (j *journal) run() {
	defer close(j.done)
	if err := recovered.Guard(func() error { j.write(j.ctx); return nil }); err != nil {
		j.log.Error("panic in a stream's journal", "error", err)
	}
}

// write is run's loop. Of consecutive errors it logs the first one.
func (j *journal) write(ctx context.Context) {
	renew := time.NewTicker(renewInterval)
	defer renew.Stop()
	progress := time.NewTicker(progressInterval)
	defer progress.Stop()
	failing, wake := false, j.wake
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-progress.C:
			j.publishProgress(false)
			continue
		case <-renew.C:
			j.renew(ctx)
			continue
		case <-wake:
		case <-retry:
		}
		ended, err := j.writeWaiting(ctx)
		if ended {
			return
		}
		switch {
		case err != nil && !failing:
			j.log.Warn("events wait for the store; it is retried", "error", err)
		case err == nil && failing:
			j.log.Info("events are stored again")
		}
		wake, retry = j.wake, nil
		if failing = err != nil; failing { // one attempt per retryInterval, however many events arrive
			wake, retry = nil, time.After(retryInterval)
		}
	}
}

// renew renews the record of the stream. Events wait meanwhile.
func (j *journal) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := j.store.Renew(ctx, j.id); err != nil {
		j.log.Warn("the record of a stream could not be renewed", "error", err)
	}
}

// writeWaiting writes the events that wait, and after the last ones the end of the
// record. It reports whether the store has everything.
func (j *journal) writeWaiting(ctx context.Context) (ended bool, err error) {
	for {
		j.mu.Lock()
		batch := j.batch()
		first, closing := j.stored, j.closing
		j.mu.Unlock()
		if len(batch) == 0 {
			if closing {
				err = j.finishRecord(ctx)
			}
			return closing && err == nil, err
		}
		call, cancel := context.WithTimeout(ctx, storeTimeout)
		err := j.store.Append(call, j.id, first, batch)
		cancel()
		if errors.Is(err, store.ErrConflict) {
			j.fence()
			continue
		}
		if err != nil {
			return false, err
		}
		j.mu.Lock()
		j.waiting = j.waiting[len(batch):]
		j.stored += len(batch)
		j.mu.Unlock()
		j.publishProgress(false)
	}
}

// batch returns the events that the next call of the store takes. The caller holds mu.
func (j *journal) batch() [][]byte {
	size := 0
	for i, raw := range j.waiting {
		if size += len(raw); i > 0 && size > batchBytes {
			return j.waiting[:i]
		}
	}
	return j.waiting
}

// finishRecord writes the end of the stream into its record. An end that the record has, of
// an earlier attempt or of other nodes, is the end of the stream.
func (j *journal) finishRecord(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	j.loseEnd()
	err := j.store.Finish(ctx, j.id, j.end.status, j.at, j.end.cause)
	if errors.Is(err, store.ErrConflict) {
		var rec store.Stream
		if rec, err = j.store.Get(ctx, j.id); err == nil {
			j.end.status, j.end.cause = rec.Status, rec.Cause
		}
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	j.recorded = true
	j.publishProgress(true)
	return nil
}

// loseEnd turns the end of a stream whose events are not all kept into an error.
func (j *journal) loseEnd() {
	if j.lost > 0 && j.end.status == store.Done {
		j.end.status, j.end.cause = store.Failed, causeEventsLost
	}
}

// publishProgress tells the watchers the progress of the stream. An error is
// ignored, because watchers also poll the store, less often.
func (j *journal) publishProgress(over bool) {
	j.mu.Lock()
	p := store.Progress{Stored: j.stored, Received: time.Duration(j.received.Load()), Errors: j.errors, Over: over}
	j.errors = nil
	j.mu.Unlock()
	_ = j.store.PublishProgress(j.id, p)
}

// fence discards the events that wait and those that follow: this node was
// considered dead, and others have recorded the end of the stream.
func (j *journal) fence() {
	j.log.Error("events of a stream are no longer stored: other nodes considered this one dead and have ended the stream")
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fenced = true
	j.lose(len(j.waiting))
	j.waiting = nil
}
