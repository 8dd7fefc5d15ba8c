package words

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"hubbub/protocol"
)

// maxFailures is how many turns in a row may fail before a recording gets no more
// words.
const maxFailures = 3

// retryPauses are the pauses before a failed request is repeated, unless the
// recogniser asks for a longer one.
var retryPauses = []time.Duration{time.Second, 4 * time.Second}

// Recording gives the words to the turns of a recording, whose audio is read a second
// time. Turns must be in order of their starts.
type Recording struct {
	recogniser Recogniser
	audio      *audio
	turns      []protocol.Turn
	timed      bool
	words      []protocol.Turn
	next       int // the first turn that was not recognised
	inARow     int // failures
	failed     int
	err        error // the first
}

// NewRecording is a recording with turns, which get their Text. If timed, it also
// finds when each word was said.
func NewRecording(r Recogniser, turns []protocol.Turn, timed bool) *Recording {
	return &Recording{recogniser: r, audio: newAudio(), turns: turns, timed: timed}
}

// Audio takes the samples from a position on, at 16 kHz, and recognises the turns that
// are complete with them. It waits for the recogniser; the error is that of ctx.
func (r *Recording) Audio(ctx context.Context, position int64, samples []float32) error {
	r.audio.Add(position, samples)
	return r.recognise(ctx, float64(position+int64(len(samples)))/sampleRate-margin)
}

// Finish recognises the turns at the end. It returns how many turns have no words
// because the recogniser failed, and its first failure.
func (r *Recording) Finish(ctx context.Context) (failed int, first, err error) {
	err = r.recognise(ctx, protocol.MaxTimestamp)
	return r.failed, r.err, err
}

// Words are the words of all turns with their times, in order of their starts, of a
// timed recording. Where the recogniser gives no times, the words of a part of a turn
// share its time according to their numbers of characters.
func (r *Recording) Words() []protocol.Turn {
	slices.SortStableFunc(r.words, func(a, b protocol.Turn) int { return cmp.Compare(a.Start, b.Start) })
	return r.words
}

// recognise recognises the turns that end before a time in seconds.
func (r *Recording) recognise(ctx context.Context, until float64) error {
	for ; r.next < len(r.turns) && r.turns[r.next].End <= until; r.next++ {
		if r.inARow == maxFailures {
			r.failed++
			continue
		}
		if err := r.turn(ctx, &r.turns[r.next]); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			r.err, r.failed, r.inARow = cmp.Or(r.err, err), r.failed+1, r.inARow+1
		}
	}
	return nil
}

// turn recognises one turn: all of it, or none.
func (r *Recording) turn(ctx context.Context, t *protocol.Turn) error {
	var all []string
	var words []protocol.Turn
	from, parts := r.audio.take(t.Start, t.End)
	for _, part := range parts {
		text, timed, err := r.part(ctx, part)
		if err != nil {
			return err
		}
		r.inARow = 0
		to := from + float64(len(part))/sampleRate
		if text != "" {
			all = append(all, text)
		}
		if r.timed && len(timed) == 0 {
			timed = divide(text, max(t.Start-from, 0), min(t.End, to)-from)
		}
		words = append(words, place(timed, from, *t)...)
		from = to
	}
	t.Text = strings.Join(all, " ")
	r.words = append(r.words, words...)
	return nil
}

// part recognises a part of a turn. What may succeed later is tried again.
func (r *Recording) part(ctx context.Context, samples []int16) (text string, timed []Word, err error) {
	for try := 0; ; try++ {
		text, timed, err = r.recogniser.Recognise(ctx, wav(samples), r.timed)
		e := (*Error)(nil)
		if !errors.As(err, &e) || !e.temporary || try == len(retryPauses) || r.inARow > 0 {
			return text, timed, err
		}
		if err := protocol.Sleep(ctx, min(max(retryPauses[try], e.retryAfter), maxInterval)); err != nil {
			return "", nil, err
		}
	}
}
