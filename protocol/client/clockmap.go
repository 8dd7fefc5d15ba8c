package client

import (
	"sort"

	"hubbub/protocol"
)

// clockMap maps the clock of the service, which counts the chunks that were
// sent, to the capture clock, which also counts those that were dropped. Its
// methods are not safe for concurrent use.
type clockMap struct {
	steps []clockStep // in order of sent; at most one for two chunks
}

// clockStep says that from the sent-th chunk on, the capture is ahead by so many
// chunks.
type clockStep struct{ sent, ahead int64 }

// add notes that chunk seq is the sent-th to be sent, both counted from 0. Drops
// without a sent chunk between them are one step.
func (m *clockMap) add(sent, seq int64) {
	ahead := seq - sent
	if n := len(m.steps); n > 0 && m.steps[n-1].ahead == ahead || n == 0 && ahead == 0 {
		return
	}
	m.steps = append(m.steps, clockStep{sent: sent, ahead: ahead})
}

// capture is the time on the capture clock, in seconds, of a time on the
// service's. Where audio was dropped exactly there, a start lies after the gap
// and an end before it.
func (m *clockMap) capture(seconds float64, end bool) float64 {
	at := seconds * protocol.SampleRate / protocol.ChunkSamples // in chunks
	const tolerance = 1e-6                                      // timestamps are decimals, chunks are tenths
	i := sort.Search(len(m.steps), func(i int) bool {
		if end {
			return float64(m.steps[i].sent) >= at-tolerance
		}
		return float64(m.steps[i].sent) > at+tolerance
	})
	if i == 0 {
		return seconds
	}
	return protocol.Round1ms(seconds + float64(m.steps[i-1].ahead*protocol.ChunkSamples)/protocol.SampleRate)
}
