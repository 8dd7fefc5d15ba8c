package protocol

import (
	"context"
	"slices"
	"sync"
)

const (
	// liveBacklog is how much audio of a source that cannot wait is kept for a
	// service that does not take it, in chunks: a minute.
	liveBacklog = 600
	// patientBacklog is the same for a source that can: 5 s.
	patientBacklog = 50
	// sentBacklog bounds what is kept of audio that went out but may have to
	// go out again: more than any system holds on the way.
	sentBacklog = 3000
)

// queued is a chunk on its way to the service.
type queued struct {
	seq     int64
	samples []float32
}

// backlog is the audio between a source and a service that may be lost: what
// was sent and may have to be sent again, then what waits.
type backlog struct {
	live bool

	mu      sync.Mutex
	chunks  []queued // in order of seq
	next    int      // the first of them that waits
	reached int64    // what follows the newest chunk that any stream was sent
	ended   bool
	hurried bool
	dropped int64 // chunks that no stream was sent
	gaps    []Span

	kick chan struct{} // something waits, or the end
	room chan struct{} // something that waited has left
}

// Span is a stretch of the capture's clock, in seconds.
type Span struct{ Start, End float64 }

func newBacklog(live bool) *backlog {
	return &backlog{live: live, kick: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put takes a chunk. A live one makes room by dropping the oldest that waits;
// another one waits for room until ctx or over ends.
func (b *backlog) put(ctx context.Context, c queued, over <-chan struct{}) error {
	for {
		b.mu.Lock()
		switch waiting := len(b.chunks) - b.next; {
		case b.live && waiting >= liveBacklog:
			b.drop(b.next, b.next+1)
			fallthrough
		case b.live, b.hurried, waiting < patientBacklog:
			b.chunks = append(b.chunks, c)
			b.mu.Unlock()
			poke(b.kick)
			return nil
		}
		b.mu.Unlock()
		select {
		case <-b.room:
		case <-over:
			return ErrStreamOver
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drop gives up chunks; those that no stream was sent are a loss.
func (b *backlog) drop(from, to int) {
	for _, c := range b.chunks[from:to] {
		if c.seq >= b.reached {
			b.dropped++
			b.mark(Span{chunkTime(c.seq), chunkTime(c.seq + 1)})
		}
	}
	b.chunks = slices.Delete(b.chunks, from, to)
	if b.next >= to {
		b.next -= to - from
	} else {
		b.next = min(b.next, from)
	}
}

// mark notes a stretch of which nobody will know who spoke.
func (b *backlog) mark(s Span) {
	n := len(b.gaps)
	switch {
	case !(s.End > s.Start):
	case n > 0 && s.Start <= b.gaps[n-1].End:
		b.gaps = append(b.gaps[:n-1:n-1], Span{min(s.Start, b.gaps[n-1].Start), max(s.End, b.gaps[n-1].End)}) // the slice is shared
	case n < maxGaps:
		b.gaps = append(b.gaps, s)
	}
}

// end says that no more chunks come.
func (b *backlog) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	poke(b.kick)
}

// hurry lets a chunk that waits for room in.
func (b *backlog) hurry() {
	b.mu.Lock()
	b.hurried = true
	b.mu.Unlock()
	poke(b.room)
}

// something waits until there is audio to send, or its end; false when ctx
// ended first.
func (b *backlog) something(ctx context.Context, hurry <-chan struct{}) bool {
	for {
		if _, ok, ended := b.first(); ok || ended {
			return true
		}
		select {
		case <-b.kick:
		case <-hurry:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// first is the oldest chunk that waits; where there is none, ended says whether
// there will be.
func (b *backlog) first() (c queued, ok, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next < len(b.chunks) {
		return b.chunks[b.next], true, false
	}
	return c, false, b.ended
}

// sent notes that a chunk that waited has gone out. It may have been dropped
// meanwhile.
func (b *backlog) sent(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached = max(b.reached, seq+1)
	if b.next < len(b.chunks) && b.chunks[b.next].seq == seq {
		b.next++
	}
	if b.next > sentBacklog {
		b.drop(0, b.next-sentBacklog)
	}
	poke(b.room)
}

// forget lets go of what was sent and lies before a time: nobody will ask for
// it again.
func (b *backlog) forget(before float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < b.next && chunkTime(b.chunks[n].seq+1) <= before {
		n++
	}
	if n > 0 {
		b.drop(0, n)
	}
}

// rewind begins again for a new stream: at the chunk that lies at a time, or
// later where more than most chunks would wait (most < 0: no bound). What lies
// between cut and there is lost and marked as a gap, which is returned.
func (b *backlog) rewind(from, cut float64, most int) (gap Span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = 0
	for b.next < len(b.chunks) && chunkTime(b.chunks[b.next].seq+1) <= from {
		b.next++
	}
	if over := len(b.chunks) - b.next - most; most >= 0 && over > 0 {
		b.drop(b.next, b.next+over)
	}
	gap = Span{cut, cut}
	if b.next < len(b.chunks) {
		gap.End = max(cut, chunkTime(b.chunks[b.next].seq))
	}
	b.mark(gap)
	return gap
}

func chunkTime(seq int64) float64 { return float64(seq*ChunkSamples) / SampleRate }
