package localserver

import (
	"log/slog"
	"sync"
	"time"
)

const (
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
	// overloadStreams is how many streams have to be open. With fewer it is not
	// their number that makes them late.
	overloadStreams = streamsPerCore / 3
)

// overload notices that the engines of a node do not keep up with its streams.
type overload struct {
	now func() time.Time
	log *slog.Logger

	mu      sync.Mutex
	seconds [lateSpan]struct{ at, chunks, late int64 } // a ring, by the second at
	on      bool
}

func newOverload(now func() time.Time, log *slog.Logger) *overload {
	return &overload{now: now, log: log}
}

// observe counts a chunk that was processed some time after its arrival.
func (o *overload) observe(lag time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.now().Unix()
	second := &o.seconds[at%lateSpan]
	if second.at != at {
		second.at, second.chunks, second.late = at, 0, 0
	}
	second.chunks++
	if lag > lateAfter {
		second.late++
	}
}

// current reports whether the engines do not keep up now.
func (o *overload) current() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now().Unix()
	var chunks, late int64
	for _, second := range o.seconds {
		if now-second.at < lateSpan {
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

// admitStream returns errFull, errOverloaded or errStopping, or nil if this node
// takes one more stream now.
func (s *Server) admitStream() error {
	late := s.overload.current() // always asked, because it also logs
	err := s.streams.available()
	if err == nil && late && s.streams.count() >= overloadStreams {
		err = errOverloaded
	}
	return err
}
