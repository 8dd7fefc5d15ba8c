package session

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
)

// wordsWait is how long a finished turn waits for its words before it is displayed
// without them.
const wordsWait = 10 * time.Second

// Transcriber passes the audio and the turns of a session to a speech recogniser. The
// zero value has none.
type Transcriber struct {
	queue       *words.Queue       // nil = no recogniser
	transcripts chan protocol.Turn // the words of turns, in order
	failures    chan error         // holds one that is not shown yet; the queue counts all
	late        atomic.Int64
}

// NewTranscriber starts the queue of a recogniser; nil = there is none. The session that
// gets it closes it.
func NewTranscriber(r words.Recogniser) *Transcriber {
	if r == nil {
		return &Transcriber{}
	}
	t := &Transcriber{transcripts: make(chan protocol.Turn), failures: make(chan error, 1)}
	t.queue = words.NewQueue(words.Options{
		Recogniser: r,
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

// Close ends the queue; what is being recognised is discarded.
func (t *Transcriber) Close() {
	if t.queue != nil {
		t.queue.Close()
	}
}

// audio adds a chunk of the session.
func (t *Transcriber) audio(c capture.Chunk) {
	if t.queue != nil {
		t.queue.Audio(c.Seq*capture.ChunkSamples, c.Samples)
	}
}

// turn asks for the words of a turn; false = it gets none.
func (t *Transcriber) turn(turn protocol.Turn) bool {
	return t.queue != nil && protocol.Round1ms(turn.End-turn.Start) >= words.MinTurn && t.queue.Turn(turn)
}

func (t *Transcriber) notices() (out []string) {
	if t.queue == nil {
		return nil
	}
	stats := t.queue.Stats()
	if n := stats.Failed + stats.Dropped; n > 0 {
		out = append(out, fmt.Sprintf("turns without words, because the recogniser failed or was too slow: %d", n))
	}
	if n := t.late.Load(); n > 0 {
		out = append(out, fmt.Sprintf("turns displayed without words, because these were not there after %v: %d", wordsWait, n))
	}
	return out
}

// describeFailure says what failed and what to do.
func describeFailure(err error) string {
	return fmt.Sprintf("%v. %s Until it works again, turns have no words.", err, cmp.Or(hint.Of(err), "Check --words."))
}

// heldTurn is a finished turn that is not displayed yet.
type heldTurn struct {
	protocol.Turn
	until time.Time
	ready bool // has its words, or gets none
}

// transcript gives a transcript to its turn, on the timeline, in the recording and, if it still waits for them,
// on the display.
func (o *output) transcript(t protocol.Turn) {
	if t.Text != "" {
		o.timeline.SetText(t)
	}
	o.transcribed(t)
}

// transcribed is transcript for one that the timeline has already.
func (o *output) transcribed(t protocol.Turn) {
	if t.Text != "" {
		o.rec.Transcript(t)
	}
	for i := range o.held {
		if h := &o.held[i]; !h.ready && h.Speaker == t.Speaker && h.Start == t.Start && h.End == t.End {
			h.Text, h.ready = t.Text, true
			break
		}
	}
	o.release()
}

// serviceOver says that the service sends no more words.
func (o *output) serviceOver() {
	if o.fromService {
		o.skipWords()
	}
}

// skipWords displays the turns that are held, and holds no more.
func (o *output) skipWords() {
	o.fromService, o.transcriber = false, &Transcriber{}
	for i := range o.held {
		o.held[i].ready = true
	}
	o.release()
}

// due fires when the oldest turn that is held has waited long enough.
func (o *output) due() <-chan time.Time {
	if len(o.held) == 0 {
		return nil
	}
	return time.After(time.Until(o.held[0].until))
}

// release displays, in order, the turns that need not wait any longer.
func (o *output) release() {
	for ; len(o.held) > 0; o.held = o.held[1:] {
		h := o.held[0]
		if !h.ready {
			if time.Now().Before(h.until) {
				return
			}
			o.transcriber.late.Add(1)
		}
		o.keep(o.display.turn(h.Turn))
	}
}

// wordsFailed reports a failure of the recogniser that was not reported yet.
func (o *output) wordsFailed() {
	select {
	case err := <-o.transcriber.failures:
		o.keep(o.display.notice(describeFailure(err), false))
	default:
	}
}

// waiting reports whether turns are held for a display that still works.
func (o *output) waiting() bool { return len(o.held) > 0 && o.failed == nil }
