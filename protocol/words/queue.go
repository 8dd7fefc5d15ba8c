package words

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"hubbub/capture/audiofile"
	"hubbub/protocol"
)

const (
	// atOnce is how many turns are recognised at once.
	atOnce = 2
	// maxPending is how many turns are recognised or wait for those before them.
	maxPending = 2 * atOnce
	// maxWaiting bounds the turns that wait.
	maxWaiting = 256
	// firstInterval and maxInterval bound the time after a failure in which no
	// turn is recognised; it doubles with each.
	firstInterval = time.Second
	maxInterval   = time.Minute
)

// Stats counts turns.
type Stats struct {
	Recognised, Failed atomic.Int64
	Dropped            atomic.Int64 // the queue was full
}

// Options are what a Queue needs.
type Options struct {
	Recogniser Recogniser
	// Deliver gets every turn, in the order in which they were added, with its
	// words as Text. It is called for one after the other; ctx ends with the queue.
	Deliver func(ctx context.Context, t protocol.Turn)
	// Failed gets the first of consecutive failures.
	Failed func(error)
	// Track is the track that a turn is of, from 0 on; nil = there is one.
	Track func(protocol.Turn) int
	// Stats, unless nil, counts what becomes of the turns, also those of other queues.
	Stats *Stats
}

// Queue recognises the finished turns of a session in order, at most two at a
// time. It has one goroutine and those of the turns that are recognised; Close
// ends them.
type Queue struct {
	o      Options
	audio  tracks
	ctx    context.Context
	cancel context.CancelFunc
	turns  chan protocol.Turn
	done   sync.WaitGroup

	mu     sync.Mutex    // guards what follows
	next   time.Duration // the interval after the next failure; firstInterval unless the last attempt failed
	resume time.Time     // no turn is recognised before
}

// NewQueue starts a queue.
func NewQueue(o Options) *Queue {
	o.Stats = cmp.Or(o.Stats, new(Stats))
	q := &Queue{o: o, audio: tracks{of: o.Track}, next: firstInterval, turns: make(chan protocol.Turn, maxWaiting)}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.done.Go(q.run)
	return q
}

// Audio takes samples of each track of the session at 16 kHz, from a position in samples on.
func (q *Queue) Audio(position int64, samples ...[]float32) { q.audio.add(position, samples) }

// Turn adds a finished turn, whose audio was added before. It never waits; false =
// the queue is full, and the turn is not delivered.
func (q *Queue) Turn(t protocol.Turn) bool {
	select {
	case q.turns <- t:
		return true
	default:
		q.o.Stats.Dropped.Add(1)
		return false
	}
}

// Stats counts what became of the turns.
func (q *Queue) Stats() *Stats { return q.o.Stats }

// Drain ends the queue after the turns that were added, or when ctx ends. Turn must
// not be called any more.
func (q *Queue) Drain(ctx context.Context) {
	close(q.turns)
	defer context.AfterFunc(ctx, q.cancel)()
	q.done.Wait()
	q.cancel()
}

// Close ends the queue at once. Turn must not be called any more.
func (q *Queue) Close() {
	q.cancel()
	q.done.Wait()
}

// run recognises the turns in the order in which they were added. Each one that has its
// words waits until those before it are delivered.
func (q *Queue) run() {
	slots, pending := semaphore.NewWeighted(atOnce), semaphore.NewWeighted(maxPending)
	before := make(chan struct{}) // closed when the turns before are delivered
	close(before)
	for {
		var turn protocol.Turn
		more := false
		select {
		case <-q.ctx.Done():
		case turn, more = <-q.turns:
		}
		if !more {
			return
		}
		// After a failure, one turn at a time finds out whether that is over.
		taken, err := int64(1), cmp.Or(pending.Acquire(q.ctx, 1), slots.Acquire(q.ctx, 1))
		if err == nil && q.Failing() {
			taken, err = atOnce, slots.Acquire(q.ctx, atOnce-1)
		}
		if err != nil || q.waitInterval() != nil {
			return
		}
		_, parts := q.audio.take(turn)
		earlier, delivered := before, make(chan struct{})
		before = delivered
		q.done.Go(func() {
			defer close(delivered)
			defer pending.Release(1)
			turn.Text = q.recognise(parts)
			slots.Release(taken)
			select {
			case <-earlier:
			case <-q.ctx.Done():
			}
			if q.ctx.Err() == nil {
				q.o.Deliver(q.ctx, turn)
			}
		})
	}
}

// Failing reports whether the last attempt failed.
func (q *Queue) Failing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next > firstInterval
}

// waitInterval waits for the end of the interval after a failure, or that of the queue,
// which is an error.
func (q *Queue) waitInterval() error {
	q.mu.Lock()
	wait := time.Until(q.resume)
	q.mu.Unlock()
	return protocol.Sleep(q.ctx, wait)
}

// recognise returns the words of the parts of a turn.
func (q *Queue) recognise(parts [][]float32) string {
	if len(parts) == 0 {
		return ""
	}
	var all []string
	for _, p := range parts {
		text, _, err := q.o.Recogniser.Recognise(q.ctx, audiofile.WAV(p), false)
		if err != nil {
			q.failed(err)
			return ""
		}
		if text != "" {
			all = append(all, text)
		}
	}
	q.o.Stats.Recognised.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next = firstInterval
	return clean(strings.Join(all, " "))
}

// failed sets when the next attempt is made, and reports the first failure.
func (q *Queue) failed(err error) {
	if q.ctx.Err() != nil {
		return
	}
	q.o.Stats.Failed.Add(1)
	q.mu.Lock()
	wait := q.next
	if e, ok := errors.AsType[*Error](err); ok {
		wait = max(wait, e.retryAfter)
	}
	first := q.next == firstInterval
	q.resume, q.next = time.Now().Add(wait), min(2*q.next, maxInterval)
	q.mu.Unlock()
	if first {
		q.o.Failed(err)
	}
}
