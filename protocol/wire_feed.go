package protocol

import (
	"sync"
	"time"
)

// wireStamp numbers the records of a tap and gives them times in one order. A
// record that has a time already keeps it.
type wireStamp struct {
	number int64
	last   time.Time
	queue  func() int // chunks that wait to be sent; nil = not known
}

func (s *wireStamp) stamp(r *WireRecord) {
	s.number++
	r.Number = s.number
	if r.At.IsZero() {
		r.At = time.Now()
	}
	if r.At.Before(s.last) {
		r.At = s.last
	}
	s.last = r.At
	if r.Queue = -1; r.Kind == WireChunk && s.queue != nil {
		r.Queue = s.queue()
	}
}

// WireFeed is a Tap that hands every record to one taker, in order, and loses
// none: when the taker is a whole queue behind, the wire waits for it.
type WireFeed struct {
	records chan WireRecord
	quit    chan struct{} // closed by Close
	once    sync.Once

	mu     sync.Mutex // held also while waiting for the taker: that is the order
	stamp  wireStamp
	closed bool
}

// NewWireFeed makes one with a queue for so many records.
func NewWireFeed(queue int) *WireFeed {
	return &WireFeed{records: make(chan WireRecord, queue), quit: make(chan struct{})}
}

// SetQueue says how to find out how many chunks wait to be sent. It must not
// wait.
func (f *WireFeed) SetQueue(queue func() int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stamp.queue = queue
}

// Record waits for a place in the queue, or for Close.
func (f *WireFeed) Record(r WireRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.stamp.stamp(&r)
	select {
	case f.records <- r:
	case <-f.quit:
	}
}

// Records is closed by Close; what is queued by then can still be taken.
func (f *WireFeed) Records() <-chan WireRecord { return f.records }

// Close ends the feed: what is recorded later is passed over. It may be called
// more than once.
func (f *WireFeed) Close() {
	f.once.Do(func() {
		close(f.quit) // lets go of whoever waits, and with it of the lock
		f.mu.Lock()
		defer f.mu.Unlock()
		f.closed = true
		close(f.records)
	})
}
