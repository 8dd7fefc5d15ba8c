package words

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"hubbub/capture/audiofile"
	"hubbub/protocol"
)

// maxFailures is how many turns in a row may fail before a recording gets no more
// words.
const maxFailures = 3

// errLeftOut is the error of the turns after these.
var errLeftOut = errors.New("the recogniser failed before")

// retryPauses are the pauses before a failed request is repeated, unless the
// recogniser asks for a longer one.
var retryPauses = []time.Duration{time.Second, 4 * time.Second}

// Recording gives the words to the turns of a recording, whose audio is read a second
// time, at most two at once. Turns must be in order of their starts. Finish ends the
// goroutines.
type Recording struct {
	recogniser Recogniser
	audio      tracks
	turns      []protocol.Turn
	timed      bool
	words      [][]protocol.Turn // by turn
	next       int               // the first turn that was not begun
	slots      *semaphore.Weighted
	running    sync.WaitGroup

	mu     sync.Mutex // guards what follows
	inARow int        // failures
	failed int
	err    error // the first
}

// NewRecording is a recording with turns, which get their Text. If timed, it also
// finds when each word was said. track is the track that a turn is of, from 0 on; nil =
// there is one.
func NewRecording(r Recogniser, turns []protocol.Turn, timed bool, track func(protocol.Turn) int) *Recording {
	return &Recording{recogniser: r, audio: tracks{of: track}, turns: turns, timed: timed,
		words: make([][]protocol.Turn, len(turns)), slots: semaphore.NewWeighted(atOnce)}
}

// Audio takes the samples of each track from a position on, at 16 kHz, and begins to recognise the
// turns that are complete with them. It waits for a slow recogniser; the error is that
// of ctx.
func (r *Recording) Audio(ctx context.Context, position int64, samples ...[]float32) error {
	r.audio.add(position, samples)
	return r.recognise(ctx, float64(position+int64(len(samples[0])))/sampleRate-margin)
}

// Finish recognises the turns at the end. It returns how many turns have no words
// because the recogniser failed, and its first failure. Once ctx has ended it begins no
// turn any more, and waits for those that it has begun.
func (r *Recording) Finish(ctx context.Context) (failed int, first, err error) {
	err = r.recognise(ctx, protocol.MaxTimestamp)
	r.running.Wait()
	return r.failed, r.err, cmp.Or(err, ctx.Err())
}

// Words are the words of all turns with their times, in order of their starts, of a
// timed recording. Where the recogniser gives no times, the words of a part of a turn
// share its time according to their numbers of characters.
func (r *Recording) Words() []protocol.Turn {
	words := slices.Concat(r.words...)
	slices.SortStableFunc(words, func(a, b protocol.Turn) int { return cmp.Compare(a.Start, b.Start) })
	return words
}

// recognise begins the turns that end before a time in seconds.
func (r *Recording) recognise(ctx context.Context, until float64) error {
	for ; r.next < len(r.turns) && r.turns[r.next].End <= until; r.next++ {
		slots := int64(1)
		if r.failures() > 0 { // one turn at a time finds out whether that is over
			slots = atOnce
		}
		if err := r.slots.Acquire(ctx, slots); err != nil {
			return err
		}
		if r.failures() >= maxFailures {
			r.slots.Release(slots)
			r.count(errLeftOut)
			continue
		}
		i := r.next
		from, parts := r.audio.take(r.turns[i])
		r.running.Go(func() {
			defer r.slots.Release(slots)
			r.turn(ctx, i, from, parts)
		})
	}
	return nil
}

// failures are those in a row.
func (r *Recording) failures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inARow
}

// count counts the failure of a turn, or with nil the success of a part of one.
func (r *Recording) count(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.inARow = 0
		return
	}
	r.err, r.failed, r.inARow = cmp.Or(r.err, err), r.failed+1, r.inARow+1
}

// turn recognises one turn: all of it, or none. Its audio begins at from.
func (r *Recording) turn(ctx context.Context, i int, from float64, parts [][]float32) {
	t := &r.turns[i]
	var all []string
	var words []protocol.Turn
	for _, part := range parts {
		text, timed, err := r.part(ctx, part)
		r.count(err)
		if err != nil {
			return
		}
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
	t.Text, r.words[i] = strings.Join(all, " "), words
}

// part recognises a part of a turn. What may succeed later is tried again.
func (r *Recording) part(ctx context.Context, samples []float32) (text string, timed []Word, err error) {
	for try := 0; ; try++ {
		text, timed, err = r.recogniser.Recognise(ctx, audiofile.WAV(samples), r.timed)
		e := (*Error)(nil)
		if !errors.As(err, &e) || !e.temporary || try == len(retryPauses) || r.failures() > 0 {
			return text, timed, err
		}
		if err := protocol.Sleep(ctx, min(max(retryPauses[try], e.retryAfter), maxInterval)); err != nil {
			return "", nil, err
		}
	}
}
