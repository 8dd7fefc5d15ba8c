package trace

import (
	"sync"
	"time"
)

// stamper numbers the records of a tracer and sets their times, in one order. A
// record that has a time keeps it.
type stamper struct {
	mu     sync.Mutex // guards all of the tracer
	number int64
	last   time.Time
}

// stamp stamps a record. s.mu is held.
func (s *stamper) stamp(r *Record) {
	s.number++
	r.Number = s.number
	if r.At.IsZero() {
		r.At = time.Now()
	}
	if r.At.Before(s.last) {
		r.At = s.last
	}
	s.last = r.At
}

// Queue is a Tracer that passes every record to one receiver, in order. It drops
// none: when the queue is full, the connection waits for the receiver.
type Queue struct {
	stamper // its lock is also held while the queue is full, which keeps the order
	records chan Record
	closing chan struct{} // closed by Close
	once    sync.Once
}

// NewQueue returns a Queue of a size, in records.
func NewQueue(size int) *Queue {
	return &Queue{records: make(chan Record, size), closing: make(chan struct{})}
}

// Record adds a record. It blocks while the queue is full, until Close.
func (q *Queue) Record(r Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.closing:
		return
	default:
	}
	q.stamp(&r)
	select {
	case q.records <- r:
	case <-q.closing:
	}
}

// Records is closed by Close; queued records can still be received then.
func (q *Queue) Records() <-chan Record { return q.records }

// Close ends the queue: later records are ignored. It may be called more than
// once.
func (q *Queue) Close() {
	q.once.Do(func() {
		close(q.closing) // unblocks Record, which then releases the lock
		q.mu.Lock()
		defer q.mu.Unlock()
		close(q.records)
	})
}
