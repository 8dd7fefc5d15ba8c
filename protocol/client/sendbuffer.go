package client

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"hubbub/protocol"
)

// Bounds of a send buffer, in chunks of 100 ms.
const (
	// liveBuffer is how much audio of a source that cannot wait is buffered
	// while the service does not accept it: a minute.
	liveBuffer = 600
	// waitingBuffer is the same for a source that can wait: 5 s.
	waitingBuffer = 50
	// sentBuffer bounds the audio that was sent and may have to be
	// retransmitted: more than any system has in flight.
	sentBuffer = 3000
	// maxGaps bounds the gaps that are remembered.
	maxGaps = 1 << 14
)

// bufferedChunk is a chunk on its way to the service.
type bufferedChunk struct {
	seq     int64
	samples []float32
}

// sendBuffer is the audio between a source and a stream that may be lost: the
// chunks that were sent and may have to be retransmitted, then those that wait
// to be sent.
type sendBuffer struct {
	live    bool            // the source cannot wait: the oldest waiting chunk is dropped
	backlog int             // how many chunks a new stream may begin with
	ending  <-chan struct{} // see ResilientOptions

	mu        sync.Mutex
	chunks    []bufferedChunk // in order of seq
	next      int             // index of the first that waits
	reached   int64           // follows the newest chunk that any stream was sent
	sentUntil float64         // State.Sent
	begun     time.Time       // when chunk 0 would have been sent; zero before the first
	ended     bool
	dropped   int64 // chunks that no stream was sent
	gaps      []protocol.Span

	added   chan struct{} // a chunk waits, or the end
	removed chan struct{} // a chunk no longer waits
}

func newSendBuffer(live bool, ending <-chan struct{}) *sendBuffer {
	return &sendBuffer{live: live, backlog: math.MaxInt, ending: ending, added: make(chan struct{}, 1), removed: make(chan struct{}, 1)}
}

// notify sets a flag in the form of a channel with a buffer of one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put adds a chunk. Without room, a live buffer drops the oldest chunk that
// waits; another one blocks until there is room, or over is closed. A session that
// ends takes what is left.
func (b *sendBuffer) put(c bufferedChunk, over <-chan struct{}) error {
	for ending := false; ; {
		b.mu.Lock()
		switch waiting := len(b.chunks) - b.next; {
		case b.live && waiting >= liveBuffer:
			b.drop(b.next, b.next+1)
			fallthrough
		case b.live, ending, waiting < waitingBuffer:
			b.chunks = append(b.chunks, c)
			b.mu.Unlock()
			notify(b.added)
			return nil
		}
		b.mu.Unlock()
		select {
		case <-b.removed:
		case <-b.ending:
			ending = true
		case <-over:
			return ErrStreamOver
		}
	}
}

// drop removes chunks. Those that no stream was sent are counted and become a
// gap.
func (b *sendBuffer) drop(from, to int) {
	for _, c := range b.chunks[from:to] {
		if c.seq >= b.reached {
			b.dropped++
			b.addGap(protocol.Span{Start: chunkTime(c.seq), End: chunkTime(c.seq + 1)})
		}
	}
	b.chunks = slices.Delete(b.chunks, from, to)
	if b.next >= to {
		b.next -= to - from
	} else {
		b.next = min(b.next, from)
	}
}

// addGap notes a stretch that no stream decides. It may begin before older gaps, and ends after them.
func (b *sendBuffer) addGap(s protocol.Span) {
	n := len(b.gaps)
	if !(s.End > s.Start) {
		return
	}
	for ; n > 0 && s.Start <= b.gaps[n-1].End; n-- {
		s = protocol.Span{Start: min(s.Start, b.gaps[n-1].Start), End: max(s.End, b.gaps[n-1].End)}
	}
	if n < maxGaps {
		b.gaps = append(b.gaps[:n:n], s) // the slice is shared
	}
}

// end says that no more chunks come.
func (b *sendBuffer) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	notify(b.added)
}

// waitForAudio blocks until a chunk waits or no more will come, or the session
// ends. It returns false when ctx ended first.
func (b *sendBuffer) waitForAudio(ctx context.Context) bool {
	for {
		if n, ended := b.waiting(); n > 0 || ended {
			return true
		}
		select {
		case <-b.added:
		case <-b.ending:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// waiting is how many chunks wait to be sent. ended says that no more will come.
func (b *sendBuffer) waiting() (n int, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.chunks) - b.next, b.ended
}

// fill sets what a State says of the audio.
func (b *sendBuffer) fill(st *State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st.Behind += time.Duration(len(b.chunks)-b.next) * protocol.ChunkDuration
	st.Sent, st.Dropped, st.Gaps = b.sentUntil, b.dropped, slices.Clip(b.gaps)
	if !b.begun.IsZero() {
		st.Ahead = time.Duration(b.reached)*protocol.ChunkDuration - time.Since(b.begun)
	}
}

// take is the oldest chunk that waits, for sending. Only the one goroutine that
// sends may call it, and only while a chunk waits.
func (b *sendBuffer) take() bufferedChunk {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.chunks[b.next]
	b.next++
	notify(b.removed)
	return c
}

// noteSent notes that a chunk has been written to the stream.
func (b *sendBuffer) noteSent(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun.IsZero() {
		b.begun = time.Now().Add(-time.Duration(seq) * protocol.ChunkDuration)
	}
	b.reached, b.sentUntil = max(b.reached, seq+1), max(b.sentUntil, chunkTime(seq+1))
	if b.next > sentBuffer {
		b.drop(0, b.next-sentBuffer)
	}
}

// forget removes sent chunks that end before a time, in seconds: they will not
// be retransmitted. An event of a later time than the audio does not concern the chunk
// that is being sent.
func (b *sendBuffer) forget(before float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < b.next && b.chunks[n].seq < b.reached && chunkTime(b.chunks[n].seq+1) <= before {
		n++
	}
	b.drop(0, n)
}

// lost notes that the stream is lost that decided until cut.
func (b *sendBuffer) lost(cut float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sentUntil = cut
}

// rewind restarts sending for a new stream, from before the cut on, or later where more chunks than the backlog would wait.
// The stretch between the cut and that chunk is a gap, which is returned.
func (b *sendBuffer) rewind(cut float64) (gap protocol.Span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, skipped := b.restartAt(cut)
	b.next = i
	b.drop(i-skipped, i)
	gap = protocol.Span{Start: cut, End: cut}
	if b.next < len(b.chunks) {
		gap.End = max(cut, chunkTime(b.chunks[b.next].seq))
	}
	b.addGap(gap)
	b.sentUntil = max(b.sentUntil, gap.End)
	return gap
}

// restartAt is the index at which rewind restarts, and how many chunks it skips before.
// The lock is held.
func (b *sendBuffer) restartAt(cut float64) (i, skipped int) {
	for i < len(b.chunks) && chunkTime(b.chunks[i].seq+1) <= cut-warmUp.Seconds() {
		i++
	}
	skipped = max(len(b.chunks)-b.backlog-i, 0)
	return i + skipped, skipped
}

// wouldRewind is where rewind would restart sending now, in seconds.
func (b *sendBuffer) wouldRewind(cut float64) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, _ := b.restartAt(cut); i < len(b.chunks) {
		return chunkTime(b.chunks[i].seq)
	}
	return chunkTime(b.reached)
}

// chunkTime is the start of a chunk on the capture clock, in seconds.
func chunkTime(seq int64) float64 { return float64(seq*protocol.ChunkSamples) / protocol.SampleRate }
