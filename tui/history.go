package tui

import (
	"sync"

	"hubbub/protocol"
)

// maxHistory bounds what a History keeps, in chunks: as long as a timeline may
// be.
const maxHistory = protocol.MaxTimestamp * 10

// History collects the loudness of a session's chunks, and which of them went
// missing, in the form in which a State shows them. One goroutine may add while
// any number take what is there. The zero value is ready.
type History struct {
	mu     sync.Mutex
	levels []Level
	gaps   []Span
}

// Add takes the level of chunk seq, counted from 0, ten a second. Chunks that
// were left out between two calls are a gap, silent; an earlier one changes
// nothing.
func (h *History) Add(seq int64, l Level) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := int64(len(h.levels))
	if seq < n || seq >= maxHistory {
		return
	}
	if seq > n {
		h.gap(Span{seconds(n), seconds(seq)})
		h.levels = append(h.levels, make([]Level, seq-n)...)
	}
	h.levels = append(h.levels, l)
}

// Gap adds a stretch that the service never had, for another reason than
// missing chunks. Gaps come in order; one that overlaps the newest is joined
// to it.
func (h *History) Gap(s Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gap(s)
}

func (h *History) gap(s Span) {
	n := len(h.gaps)
	switch {
	case !(s.End > s.Start):
	case n > 0 && s.Start <= h.gaps[n-1].End:
		// Snapshots share the slice: the newest gap is replaced in a copy.
		h.gaps = append(h.gaps[:n-1:n-1], Span{h.gaps[n-1].Start, max(s.End, h.gaps[n-1].End)})
	case n < maxGaps:
		h.gaps = append(h.gaps, s)
	}
}

// maxGaps bounds how many gaps are remembered; a network that loses more has
// made its point.
const maxGaps = 1 << 12

// Levels and Gaps are what a State wants under these names.
func (h *History) Levels() []Level {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.levels[:len(h.levels):len(h.levels)]
}

// Gaps are the stretches that the service never had, in order.
func (h *History) Gaps() []Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gaps[:len(h.gaps):len(h.gaps)]
}

func seconds(chunks int64) float64 { return float64(chunks) / 10 }
