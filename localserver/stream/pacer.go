package stream

import (
	"time"

	"hubbub/protocol"
)

const (
	// maxAhead is how much more audio than time may have arrived since the
	// first chunk.
	maxAhead = 5 * time.Second
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

	first    time.Time // arrival of the first chunk
	received time.Duration
}

// chunk counts one chunk and reports whether it is allowed already.
func (p *pacer) chunk() bool {
	if p.received == 0 {
		p.first = p.now()
	}
	p.received += protocol.ChunkDuration
	elapsed := p.now().Sub(p.first)
	return p.unpaced || p.received <= elapsed+elapsed/driftTolerance+maxAhead
}
