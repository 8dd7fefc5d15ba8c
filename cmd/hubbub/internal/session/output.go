package session

import (
	"time"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
)

// wordsWait is how long a finished turn waits for its words before it is displayed
// without them.
const wordsWait = 10 * time.Second

// heldTurn is a finished turn that is not displayed yet.
type heldTurn struct {
	protocol.Turn
	until time.Time
	ready bool // has its words, or gets none
}

// output is where the events of a stream go: the timeline, the recording and the
// display. The first failure of the display ends the source; what is under way is still
// delivered as far as possible.
type output struct {
	timeline    *protocol.Timeline
	rec         *recording.Recorder
	display     Display
	transcriber *transcriber
	// fromService says that the service sends the words of each turn.
	fromService bool
	end         func() // of the source
	held        []heldTurn
	failed      error
}

// event delivers an event that arrived when position seconds had been read.
func (o *output) event(position float64, e protocol.Event) {
	o.rec.Event(position, e)
	o.keep(o.display.event(e))
	o.turns(o.timeline.Apply(e))
	if e.Type == protocol.TypeText && e.Err == "" {
		o.transcript(e.Transcript)
	}
}

// streamOver ends the turns that the stream has left open: they lasted at least until
// position. The service sends no more words.
func (o *output) streamOver(position float64) {
	o.turns(o.timeline.EndOpen(position))
	if o.fromService {
		o.skipWords()
	}
}

func (o *output) turns(finished []protocol.Turn) {
	for _, t := range finished {
		o.rec.Turn(t)
		o.held = append(o.held, heldTurn{Turn: t, until: time.Now().Add(wordsWait), ready: !o.transcriber.turn(t) && !o.fromService})
	}
	o.release()
}

// transcript gives a transcript to its turn, on the timeline, in the recording and, if it still waits for them,
// on the display.
func (o *output) transcript(t protocol.Turn) {
	if t.Text != "" {
		o.timeline.SetText(t)
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

// skipWords displays the turns that are held, and holds no more.
func (o *output) skipWords() {
	o.fromService, o.transcriber = false, &transcriber{}
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

// recordingStopped reports a recording that has failed; the session continues. Displays
// that are looked at show it themselves, from the state.
func (o *output) recordingStopped() {
	if s := o.rec.Status(); s != nil && s.Failure != nil && !o.display.Properties().Attended {
		o.keep(o.display.notice(s.Failure.String(), true))
	}
}

// keep remembers the first failure of the display.
func (o *output) keep(err error) {
	if err != nil && o.failed == nil {
		o.failed = err
		o.end()
	}
}
