package stream

import (
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol"
	"hubbub/protocol/recovered"
)

// checkInterval is how often a stream checks whether audio still arrives, and a stream
// or watcher whether its API key was revoked.
const checkInterval = 500 * time.Millisecond

// maxSilence is how long a stream may go without audio.
const maxSilence = time.Minute

// work gives chunks to the diarizer until there is a reason to end the stream,
// and returns it.
func (s *Stream) work(drain <-chan struct{}) ending {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	idle := s.config.Now() // since when there is nothing to do
	for {
		select {
		case c, ok := <-s.chunks:
			if !ok {
				return s.input
			}
			if !s.push(c) {
				return internalError
			}
			if s.snapshots.due(s.validator.labels) {
				s.takeSnapshot()
			}
			idle = s.config.Now()
		case <-tick.C:
			switch {
			case s.config.Revoked():
				return keyRevoked
			case !s.config.Unpaced && s.config.Now().Sub(idle) >= maxSilence && len(s.chunks) == 0:
				return noAudio
			}
		case <-s.superseded.Done():
			return s.finishQueued(resumed, 0) // the other stream waits for its snapshot
		case <-drain:
			return s.finishQueued(shutdown, finishTime)
		}
	}
}

const (
	// finishTime bounds the processing of what a client has sent, 5 s of audio ahead of
	// real time at most, before the server stops.
	finishTime = 2 * time.Second
	// readPause is how long the reader may take for the next of it.
	readPause = 50 * time.Millisecond
)

// finishQueued processes the chunks that have arrived: those in the queue, and for some time
// those behind it. An unpaced client that does not pause fills the queue as fast as it is
// emptied: few later ones are processed. It returns end, unless the client has ended the stream.
func (s *Stream) finishQueued(end ending, limit time.Duration) ending {
	began := time.Now()
	for n := 0; n <= queuedChunks || !s.config.Unpaced && time.Since(began) < limit; n++ { // the end of the input comes after the last chunk
		select {
		case c, ok := <-s.chunks:
			if !ok {
				return s.input // the client ended it first
			}
			if !s.push(c) {
				return internalError
			}
		case <-time.After(readPause):
			return end
		}
	}
	return end
}

// push gives one chunk to the diarizer and emits what it commits. It reports
// whether the diarizer still works.
func (s *Stream) push(c chunk) bool {
	s.words.audio(s.received, c.samples)
	s.received += protocol.ChunkDuration
	s.journal.received.Store(int64(s.received))
	s.counters.Chunks.Add(1)
	s.audioWriter.add(c.samples)
	began := time.Now()
	ok := s.diarize(func(out []engine.Event) []engine.Event { return s.diarizer.Push(c.samples, out) })
	if s.counters.OnChunk != nil {
		s.counters.OnChunk(time.Since(began), time.Since(c.arrived))
	}
	return ok
}

// flush emits everything that the diarizer still holds and ends the open turns,
// whatever happened to the connection, so that the stored events are complete.
func (s *Stream) flush(end ending) ending {
	if end != internalError && !s.diarize(s.diarizer.Flush) {
		end = internalError
	}
	s.valid = s.validator.finish(s.received, s.valid[:0])
	s.emit()
	return end
}

// diarize makes one call of the diarizer. A panic in it ends this stream only.
func (s *Stream) diarize(call func([]engine.Event) []engine.Event) bool {
	s.raw = s.raw[:0]
	if err := recovered.Guard(func() error { s.raw = call(s.raw); return nil }); err != nil {
		s.counters.EnginePanics.Add(1)
		s.log.Error("panic in the engine", "error", err, "audio", s.received)
		return false
	}
	s.valid = s.validator.validate(s.raw, s.received, s.valid[:0])
	s.emit()
	return true
}

// emit sends and stores the valid events. Sending waits for a slow client, and
// then so do the diarizer and the reader.
func (s *Stream) emit() {
	for _, e := range s.valid {
		s.writer.send(e.Raw)
		s.journal.add(e.Raw)
		s.words.event(e)
	}
	s.counters.Events.Add(int64(len(s.valid)))
	now := s.validator.corrections
	s.counters.Moved.Add(now.Moved - s.counted.Moved)
	s.counters.Dropped.Add(now.Dropped - s.counted.Dropped)
	s.counted = now
}
