package stream

import (
	"sync/atomic"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

// Counters count what the streams and watchers of a server have done.
type Counters struct {
	Opened, Done, Failed atomic.Int64 // streams
	Chunks               atomic.Int64 // given to diarizers
	Events               atomic.Int64 // starts and ends that were sent
	FrameErrors          atomic.Int64 // frames that were rejected with an error message
	EnginePanics         atomic.Int64
	Moved, Dropped       atomic.Int64 // corrections of the validator
	Lost                 atomic.Int64 // events that are not in the store
	Watchers             atomic.Int64
	SlowWatchers         atomic.Int64 // disconnected because they did not read
	WatchErrors          atomic.Int64 // error messages that were not passed on to watchers
	engineTime           atomic.Int64 // a time.Duration

	WordsRecognised, WordsFailed, WordsDropped atomic.Int64 // turns, of streams that have ended

	// OnChunk, unless nil, is called after each chunk with the time that the
	// diarizer took for it and the time since it arrived. Streams call it
	// concurrently.
	OnChunk func(took, lag time.Duration)
}

// RealTimeFactor is the seconds of diarization for a second of audio.
func (c *Counters) RealTimeFactor() float64 {
	audio := time.Duration(c.Chunks.Load()) * protocol.ChunkDuration
	if audio == 0 {
		return 0
	}
	return time.Duration(c.engineTime.Load()).Seconds() / audio.Seconds()
}

// pushed counts one chunk.
func (c *Counters) pushed(took, lag time.Duration) {
	c.engineTime.Add(int64(took))
	if c.OnChunk != nil {
		c.OnChunk(took, lag)
	}
}

// ended counts the end of a stream.
func (c *Counters) ended(end ending, corrections corrections, lost int) {
	c.Lost.Add(int64(lost))
	if end.status == store.Done {
		c.Done.Add(1)
	} else {
		c.Failed.Add(1)
	}
	c.Moved.Add(corrections.Moved)
	c.Dropped.Add(corrections.Dropped)
}
