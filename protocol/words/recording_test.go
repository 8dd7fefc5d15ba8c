package words

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// TestRecording: every turn of a recording gets its words, however slow the recogniser
// is; one that keeps failing is left alone.
func TestRecording(t *testing.T) {
	broken := false
	var calls atomic.Int64
	r := recogniser(func(context.Context, []byte) (string, error) {
		if calls.Add(1); broken {
			return "", errors.New("broken")
		}
		return "words", nil
	})
	for _, c := range []struct {
		broken bool
		failed int
		calls  int64
		first  string
	}{{false, 0, 7, "words words"}, {true, 7, maxFailures, ""}} {
		calls.Store(0)
		broken = c.broken
		turns := []protocol.Turn{{Start: 1, End: 20}, turnAt(21), turnAt(24), turnAt(26), turnAt(28), {Start: 29.2, End: 30}, {Start: 29.6, End: 29.7}}
		rec := NewRecording(r, turns, false, nil)
		for at := int64(0); at < 30*sampleRate; at += 1600 {
			testkit.NoError(t, rec.Audio(t.Context(), at, make([]float32, 1600)))
		}
		failed, first, err := rec.Finish(t.Context())
		if failed != c.failed || (first != nil) != c.broken || err != nil || calls.Load() != c.calls || turns[0].Text != c.first || turns[6].Text != "" || (turns[5].Text == "words") == c.broken {
			t.Errorf("%d failed, %v, %v, %d calls: %v", failed, first, err, calls.Load(), turns)
		}
	}
}

// TestRecordingRecognisesTwoAtOnce: a recogniser that takes a second for each of six turns
// takes three for all, and turns that it has begun end with the recording.
func TestRecordingRecognisesTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns []protocol.Turn
		for i := range 6 {
			turns = append(turns, turnAt(float64(2*i)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		rec := NewRecording(recogniser(func(ctx context.Context, _ []byte) (string, error) {
			return "words", protocol.Sleep(ctx, time.Second)
		}), turns, false, nil)
		began := time.Now()
		err := rec.Audio(ctx, 0, make([]float32, 20*sampleRate))
		if failed, first, e := rec.Finish(ctx); failed > 0 || err != nil || e != nil || time.Since(began) != 3*time.Second || turns[5].Text != "words" {
			t.Errorf("%d failed, %v, %v, %v after %v: %v", failed, first, err, e, time.Since(began), turns)
		}
		rec = NewRecording(rec.recogniser, turns, false, nil)
		time.AfterFunc(1500*time.Millisecond, cancel)
		err = rec.Audio(ctx, 0, make([]float32, 20*sampleRate))
		if _, _, e := rec.Finish(ctx); err == nil || e == nil {
			t.Errorf("interrupted: %v, %v", err, e)
		}
	})
}
