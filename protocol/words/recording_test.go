package words

import (
	"context"
	"errors"
	"slices"
	"testing"

	"hubbub/protocol"
)

// TestRecording: every turn of a recording gets its words, however slow the recogniser
// is; one that keeps failing is left alone.
func TestRecording(t *testing.T) {
	calls, broken := 0, false
	r := recogniser(func(context.Context, []byte) (string, error) {
		if calls++; broken {
			return "", errors.New("broken")
		}
		return "words", nil
	})
	for _, c := range []struct {
		broken        bool
		failed, calls int
		first         string
	}{{false, 0, 6, "words words"}, {true, 6, maxFailures, ""}} {
		calls, broken = 0, c.broken
		turns := []protocol.Turn{{Start: 1, End: 20}, turnAt(21), turnAt(21.1), turnAt(24), turnAt(26), turnAt(28.5), {Start: 29.6, End: 29.7}}
		turns = slices.Delete(turns, 2, 3)
		rec := NewRecording(r, turns, false)
		for at := int64(0); at < 30*sampleRate; at += 1600 {
			if err := rec.Audio(t.Context(), at, make([]float32, 1600)); err != nil {
				t.Fatal(err)
			}
		}
		failed, first, err := rec.Finish(t.Context())
		if failed != c.failed || (first != nil) != c.broken || err != nil || calls != c.calls || turns[0].Text != c.first || turns[5].Text != "" || (turns[4].Text == "words") == c.broken {
			t.Errorf("%d failed, %v, %v, %d calls: %v", failed, first, err, calls, turns)
		}
	}
}
