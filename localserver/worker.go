package localserver

import (
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// work takes chunks through the engine until there is a reason to end the
// stream, and returns it.
func (s *session) work(drain <-chan struct{}) ending {
	tick := time.NewTicker(s.tick)
	defer tick.Stop()
	for {
		select {
		case samples, ok := <-s.chunks:
			if !ok {
				return s.input
			}
			if !s.push(samples) {
				return broken
			}
			if s.voices.due(s.ledger.labels) {
				s.keepVoices()
			}
		case <-tick.C:
			if s.pace.silent() && len(s.chunks) == 0 {
				return noAudio
			}
		case <-drain:
			return s.workOff()
		}
	}
}

// workOff takes the chunks that have been received and no more.
func (s *session) workOff() ending {
	for {
		select {
		case samples, ok := <-s.chunks:
			if !ok {
				return s.input // it had ended by itself
			}
			if !s.push(samples) {
				return broken
			}
		default:
			return stopped
		}
	}
}

// push gives one chunk to the engine and lets out what it commits. It reports
// whether the engine survived.
func (s *session) push(samples []float32) bool {
	s.received += protocol.ChunkDuration
	s.journal.heard.Store(int64(s.received))
	s.count.chunks.Add(1)
	s.audio.add(samples)
	began := time.Now()
	ok := s.diarize(func(out []engine.Event) []engine.Event { return s.diarizer.Push(samples, out) })
	s.count.pushed(time.Since(began), s.stamps.gone())
	s.free <- samples // never blocks: it holds as many as there are
	return ok
}

// flush lets the engine decide everything that is left and ends the open
// turns, whatever became of the connection: what is kept of a stream is whole.
func (s *session) flush(end ending) ending {
	if end != broken && !s.diarize(s.diarizer.Flush) {
		end = broken
	}
	s.legal = s.ledger.finish(s.received, s.legal[:0])
	s.emit()
	return end
}

// diarize makes one call of the engine. A panic in there costs this stream
// alone.
func (s *session) diarize(call func([]engine.Event) []engine.Event) bool {
	s.raw = s.raw[:0]
	if err := guarded(func() { s.raw = call(s.raw) }); err != nil {
		s.count.enginePanics.Add(1)
		s.log.Error("panic in the engine", "error", err, "audio", s.received)
		return false
	}
	s.legal = s.ledger.admit(s.raw, s.received, s.legal[:0])
	s.emit()
	return true
}

// emit sends the legal events and keeps them. Sending waits for a slow client,
// and with it the engine and the reader.
func (s *session) emit() {
	for _, e := range s.legal {
		s.writer.send(e.Raw)
		s.journal.add(e.Raw)
	}
	s.count.events.Add(int64(len(s.legal)))
}
