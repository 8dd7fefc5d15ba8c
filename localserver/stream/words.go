package stream

import (
	"context"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/words"
)

// lastWords bounds the time after end_of_stream in which the words of the last turns
// are waited for, if the client asked for words. It is less than clients wait. If the
// recogniser does not work, failedWords bounds it: with recordTimeout, the 2 s after which
// streams without words are closed.
const (
	lastWords   = 8 * time.Second
	failedWords = 500 * time.Millisecond
)

// errWords tells a client why turns have no words.
const errWords = "The speech recogniser of the service failed; until it works again, turns have no text"

// transcript sends the words of turns to the client and stores them, in order. Its
// audio and its queue are bounded. A nil *transcript does nothing.
type transcript struct {
	queue   *words.Queue
	writer  *writer
	journal *journal
	open    map[string]float64 // starts of open turns by label
}

func startTranscript(r words.Recogniser, s *Stream) *transcript {
	t := &transcript{writer: s.writer, journal: s.journal, open: map[string]float64{}}
	t.queue = words.NewQueue(words.Options{
		Recogniser: r,
		Stats:      &s.counters.Words,
		Deliver:    func(_ context.Context, turn protocol.Turn) { t.send(turn) },
		Failed: func(err error) {
			s.log.Warn("the speech recogniser failed", "error", err)
			s.sendError(errWords)
		},
	})
	return t
}

// send sends and stores the words of a turn.
func (t *transcript) send(turn protocol.Turn) {
	raw := protocol.NewTextEvent(turn).Raw
	t.journal.add(raw)
	t.writer.send(raw)
}

// audio adds the audio of the stream from a position on.
func (t *transcript) audio(position time.Duration, samples []float32) {
	if t != nil {
		t.queue.Audio(int64(position/protocol.ChunkDuration)*protocol.ChunkSamples, samples)
	}
}

// event adds the turn that an event ends. One that the queue has no room for gets an
// empty text at once, so that nobody waits for it.
func (t *transcript) event(e protocol.Event) {
	switch {
	case t == nil:
	case e.Type == protocol.TypeSpeakerStart:
		t.open[e.Speaker] = e.Timestamp
	case e.Type == protocol.TypeSpeakerEnd:
		turn := protocol.Turn{Speaker: e.Speaker, Start: t.open[e.Speaker], End: e.Timestamp}
		if !t.queue.Turn(turn) {
			t.send(turn)
		}
	}
}

// finish ends the queue: after the last words, or at once and when ctx ends.
func (t *transcript) finish(ctx context.Context, wait bool) {
	if t == nil {
		return
	}
	limit := lastWords
	if t.queue.Failing() {
		limit = failedWords
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !wait {
		cancel()
	}
	t.queue.Drain(ctx)
}
