package session

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
)

// transcriber passes the audio and the turns of a session to a speech recogniser. The
// zero value has none.
type transcriber struct {
	queue       *words.Queue       // nil = no recogniser
	transcripts chan protocol.Turn // the words of turns, in order
	failures    chan error         // holds one that is not shown yet; the queue counts all
	late        atomic.Int64
}

// newTranscriber starts the queue of a recogniser; nil = there is none. track is the track
// of a label, from 0 on.
func newTranscriber(r words.Recogniser, track func(label string) int) *transcriber {
	if r == nil {
		return &transcriber{}
	}
	t := &transcriber{transcripts: make(chan protocol.Turn), failures: make(chan error, 1)}
	t.queue = words.NewQueue(words.Options{
		Recogniser: r,
		Track:      func(turn protocol.Turn) int { return track(turn.Speaker) },
		Deliver: func(ctx context.Context, turn protocol.Turn) {
			select {
			case t.transcripts <- turn:
			case <-ctx.Done():
			}
		},
		Failed: func(err error) {
			select {
			case t.failures <- err:
			default:
			}
		},
	})
	return t
}

// close ends the queue; what is being recognised is discarded.
func (t *transcriber) close() {
	if t.queue != nil {
		t.queue.Close()
	}
}

func (t *transcriber) audio(c capture.Chunk) {
	if t.queue != nil {
		t.queue.Audio(c.Seq*capture.ChunkSamples, c.Apart()...)
	}
}

// turn asks for the words of a turn; false = it gets none.
func (t *transcriber) turn(turn protocol.Turn) bool {
	return t.queue != nil && protocol.Round1ms(turn.End-turn.Start) >= words.MinTurn && t.queue.Turn(turn)
}

func (t *transcriber) notices() (out []string) {
	if t.queue == nil {
		return nil
	}
	stats := t.queue.Stats()
	if n := stats.Failed.Load() + stats.Dropped.Load(); n > 0 {
		out = append(out, fmt.Sprintf("turns without words, because the recogniser failed or was too slow: %d", n))
	}
	if n := t.late.Load(); n > 0 {
		out = append(out, fmt.Sprintf("turns displayed without words, because these were not there after %v: %d", wordsWait, n))
	}
	return out
}

func describeFailure(err error) string {
	return fmt.Sprintf("%v. %s Until it works again, turns have no words.", err, cmp.Or(hint.Of(err), "Check --words."))
}
