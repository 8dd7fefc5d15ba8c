package stream

import (
	"sync"
	"time"

	"hubbub/protocol"
)

const (
	// maxAhead is how much more audio than time may have arrived since the
	// first chunk.
	maxAhead = 5 * time.Second
	// maxSilence is how long a stream may go without audio.
	maxSilence = time.Minute
	// driftTolerance is the inverse of how much faster than nominal a sound
	// card's clock may run. One in a thousand is ten times what sound cards
	// drift; without it, 5 s would accumulate in an hour and a half.
	driftTolerance = 1000
)

// pacer limits a stream to real time. It compares the audio clock, which is the
// number of chunks, with the wall clock. A client whose network was interrupted
// may catch up, because only the total since the first chunk counts.
type pacer struct {
	now     func() time.Time
	unpaced bool

	mu       sync.Mutex
	first    time.Time // arrival of the first chunk
	last     time.Time // arrival of the newest chunk, at first the opening
	received time.Duration
	blocked  bool // the reader holds a chunk for which there is no room
}

func newPacer(now func() time.Time, unpaced bool) *pacer {
	return &pacer{now: now, unpaced: unpaced, last: now()}
}

// chunk counts one chunk and reports whether it is allowed already.
func (p *pacer) chunk() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = p.now()
	if p.received == 0 {
		p.first = p.last
	}
	p.received += protocol.ChunkDuration
	elapsed := p.last.Sub(p.first)
	return p.unpaced || p.received <= elapsed+elapsed/driftTolerance+maxAhead
}

// block says whether the reader waits for room. While it does, nothing is read
// from the socket, which is not the client's fault.
func (p *pacer) block(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked, p.last = on, p.now()
}

// silent reports whether no audio has arrived for maxSilence.
func (p *pacer) silent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.blocked && p.now().Sub(p.last) >= maxSilence
}
