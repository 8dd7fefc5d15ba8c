package localserver

import (
	"sync"
	"time"

	"hubbub/protocol"
)

const (
	// maxAhead is how much more audio than time may have come since the first
	// chunk.
	maxAhead = 5 * time.Second
	// maxSilent is how long no audio may come.
	maxSilent = time.Minute
	// drift forgives a sound card whose clock is fast: for one in a thousand,
	// ten times what cards are off by, 5 s would add up in an hour and a half.
	drift = 1000
)

// pacer holds a stream to real time. The clock of the audio is the number of
// chunks, the other one is the wall's. A client that was held up may catch up:
// only the whole counts.
type pacer struct {
	now     func() time.Time
	unpaced bool

	mu       sync.Mutex
	first    time.Time // when the first chunk came
	last     time.Time // when the newest one came; before that, the opening
	received time.Duration
	holding  bool // a chunk is here and the engine is busy
}

func newPacer(now func() time.Time, unpaced bool) *pacer {
	return &pacer{now: now, unpaced: unpaced, last: now()}
}

// chunk counts one chunk of audio and reports whether it may come already.
func (p *pacer) chunk() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = p.now()
	if p.received == 0 {
		p.first = p.last
	}
	p.received += protocol.ChunkDuration
	elapsed := p.last.Sub(p.first)
	return p.unpaced || p.received <= elapsed+elapsed/drift+maxAhead
}

// hold says that the reader has a chunk for which there is no room. It is not
// the client's fault that nothing is read meanwhile.
func (p *pacer) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = on
	if !on {
		p.last = p.now()
	}
}

// silent reports whether no audio has come for too long.
func (p *pacer) silent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.holding && p.now().Sub(p.last) >= maxSilent
}
