package stream

import (
	"sync/atomic"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/words"
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

	Words words.Stats // turns of streams that asked for words

	// OnChunk, unless nil, is called after each chunk with the time that the
	// diarizer took for it and the time since it arrived. Streams call it
	// concurrently.
	OnChunk func(took, lag time.Duration)
}

// ended counts the end of a stream.
func (c *Counters) ended(end ending) {
	if end.status == store.Done {
		c.Done.Add(1)
	} else {
		c.Failed.Add(1)
	}
}
