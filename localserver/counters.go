package localserver

import (
	"sync/atomic"

	"hubbub/localserver/store"
)

// Stats is what a server has done since its start.
type Stats struct {
	Open         int   // streams that are open now
	Opened       int64 // streams in all
	Done         int64 // of them, ended well
	Failed       int64 // of them, ended in error
	Chunks       int64 // given to engines
	Events       int64 // starts and ends sent
	FrameErrors  int64 // frames that were answered with an error message
	EnginePanics int64
	Corrections  Corrections // over the streams that have ended
}

// counters are the living form of Stats.
type counters struct {
	opened, done, failed      atomic.Int64
	chunks, events            atomic.Int64
	frameErrors, enginePanics atomic.Int64
	moved, dropped, ended     atomic.Int64
}

// finished counts one stream's end.
func (c *counters) finished(end ending, fixed Corrections) {
	if end.status == store.Done {
		c.done.Add(1)
	} else {
		c.failed.Add(1)
	}
	c.moved.Add(fixed.Moved)
	c.dropped.Add(fixed.Dropped)
	c.ended.Add(fixed.Ended)
}

// Stats returns what the server has done so far.
func (s *Server) Stats() Stats {
	c := &s.count
	return Stats{
		Open: s.streams.count(), Opened: c.opened.Load(), Done: c.done.Load(), Failed: c.failed.Load(),
		Chunks: c.chunks.Load(), Events: c.events.Load(),
		FrameErrors: c.frameErrors.Load(), EnginePanics: c.enginePanics.Load(),
		Corrections: Corrections{Moved: c.moved.Load(), Dropped: c.dropped.Load(), Ended: c.ended.Load()},
	}
}
