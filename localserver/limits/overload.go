package limits

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// delayedAfter is when a chunk is delayed, by the streams or by other work: jobs
	// pause for delayedSpan.
	delayedAfter = 100 * time.Millisecond
	delayedSpan  = time.Second
	// lateAfter is when a chunk is late, counted from its arrival until it was
	// processed. If the engines have less time than their streams need, the
	// queue of each stream is full and every chunk waits for 0.8 s or more.
	lateAfter = 750 * time.Millisecond
	// lateSpan is how many seconds of chunks are judged. A pause of the machine
	// makes the chunks of one of them late: that is no overload.
	lateSpan = 5
	// The node is overloaded when half of the chunks are late, until less than
	// a tenth of them is.
	lateBegin = 2
	lateEnd   = 10
)

// Overload notices that the engines of a node do not keep up with its streams.
type Overload struct {
	now func() time.Time
	log *slog.Logger

	mu      sync.Mutex
	delayed time.Time                                  // when a chunk was last delayed
	seconds [lateSpan]struct{ at, chunks, late int64 } // a ring, by the second at
	on      bool
}

// NewOverload returns an Overload that logs its changes.
func NewOverload(now func() time.Time, log *slog.Logger) *Overload {
	return &Overload{now: now, log: log}
}

// Observe counts a chunk that was processed some time after its arrival.
func (o *Overload) Observe(lag time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	if lag > delayedAfter {
		o.delayed = now
	}
	at := now.Unix()
	second := &o.seconds[at%lateSpan]
	if second.at != at {
		second.at, second.chunks, second.late = at, 0, 0
	}
	second.chunks++
	if lag > lateAfter {
		second.late++
	}
}

// Delayed reports whether a chunk was delayed a moment ago.
func (o *Overload) Delayed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now().Sub(o.delayed) < delayedSpan
}

// Current reports whether the engines do not keep up now.
func (o *Overload) Current() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now().Unix()
	var chunks, late int64
	for _, second := range o.seconds {
		if age := now - second.at; age >= 0 && age < lateSpan { // otherwise old, or of before the clock was set back
			chunks += second.chunks
			late += second.late
		}
	}
	switch {
	case !o.on && late > 0 && lateBegin*late >= chunks:
		o.on = true
		o.log.Warn("the streams need more time than this machine has; no new ones are accepted", "chunks", chunks, "late", late)
	case o.on && lateEnd*late < max(chunks, 1):
		o.on = false
		o.log.Info("new streams are accepted again")
	}
	return o.on
}
