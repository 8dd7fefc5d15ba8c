package localserver

import (
	"sync/atomic"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
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
	lost                      atomic.Int64 // events that the journal had no room for
	watched, slowWatchers     atomic.Int64
	engineTime                atomic.Int64 // nanoseconds
	meter                     engineMeter
}

// pushed takes down how long the engine took for a chunk, and how long ago the
// chunk came.
func (c *counters) pushed(took, since time.Duration) {
	c.engineTime.Add(int64(took))
	if c.meter.push != nil {
		c.meter.push.Observe(took.Seconds())
		c.meter.lag.Observe(since.Seconds())
	}
}

// realTimeFactor is engine time for audio time.
func (c *counters) realTimeFactor() float64 {
	audio := time.Duration(c.chunks.Load()) * protocol.ChunkDuration
	if audio == 0 {
		return 0
	}
	return time.Duration(c.engineTime.Load()).Seconds() / audio.Seconds()
}

// stamps remember when the chunks came that are on their way to the engine:
// the reader writes, the worker reads, and no more than queuedChunks are
// between them.
type stamps struct {
	at      [queuedChunks]time.Time
	in, out int
}

func (s *stamps) came() {
	s.at[s.in%queuedChunks] = time.Now()
	s.in++
}

// gone is how long ago the oldest one came.
func (s *stamps) gone() time.Duration {
	since := time.Since(s.at[s.out%queuedChunks])
	s.out++
	return since
}

// finished counts one stream's end.
func (c *counters) finished(end ending, fixed Corrections, lost int) {
	c.lost.Add(int64(lost))
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
