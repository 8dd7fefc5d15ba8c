package words

import (
	"context"
	"strings"

	"hubbub/protocol"
)

// maxFailures is how many turns in a row may fail before a recording gets no more
// words.
const maxFailures = 3

// Recording gives the words to the turns of a recording, whose audio is read a second
// time. Turns must be in order of their starts.
type Recording struct {
	recogniser Recogniser
	audio      *audio
	turns      []protocol.Turn
	next       int // the first turn that was not recognised
	inARow     int // failures
	failed     int
	err        error // the first
}

// NewRecording is a recording with turns, which get their Text.
func NewRecording(r Recogniser, turns []protocol.Turn) *Recording {
	return &Recording{recogniser: r, audio: newAudio(), turns: turns}
}

// Audio takes the samples from a position on, at 16 kHz, and recognises the turns that
// are complete with them. It waits for the recogniser; the error is that of ctx.
func (r *Recording) Audio(ctx context.Context, position int64, samples []float32) error {
	r.audio.add(position, samples)
	return r.recognise(ctx, float64(position+int64(len(samples)))/sampleRate-margin)
}

// Finish recognises the turns at the end. It returns how many turns have no words
// because the recogniser failed, and its first failure.
func (r *Recording) Finish(ctx context.Context) (failed int, first, err error) {
	err = r.recognise(ctx, protocol.MaxTimestamp)
	return r.failed, r.err, err
}

// recognise recognises the turns that end before a time in seconds.
func (r *Recording) recognise(ctx context.Context, until float64) error {
	for ; r.next < len(r.turns) && r.turns[r.next].End <= until; r.next++ {
		if r.inARow == maxFailures {
			r.failed++
			continue
		}
		t := &r.turns[r.next]
		var all []string
		for _, part := range r.audio.take(t.Start, t.End) {
			text, err := r.recogniser.Recognise(ctx, wav(part))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				if r.err == nil {
					r.err = err
				}
				all = nil
				r.failed, r.inARow = r.failed+1, r.inARow+1
				break
			}
			r.inARow = 0
			all = append(all, text)
		}
		t.Text = strings.TrimSpace(strings.Join(all, " "))
	}
	return nil
}
