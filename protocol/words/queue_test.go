package words

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mewkiz/flac"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// recogniser is a function as a Recogniser.
type recogniser func(ctx context.Context, wav []byte) (string, error)

func (r recogniser) Recognise(ctx context.Context, wav []byte, _ bool) (string, []Word, error) {
	text, err := r(ctx, wav)
	return text, nil, err
}

// demoSpeech is the beginning of the first turn of the demo conversation.
func demoSpeech(t *testing.T) (samples []float32) {
	t.Helper()
	stream := testkit.Must(flac.ParseFile("../../capture/demo/demo.flac"))(t)
	defer stream.Close()
	for len(samples) < 4*sampleRate {
		frame := testkit.Must(stream.ParseNext())(t)
		for _, s := range frame.Subframes[0].Samples {
			samples = append(samples, float32(s)/32768)
		}
	}
	return samples[sampleRate/2:]
}

// turnAt is a turn of a second.
func turnAt(start float64) protocol.Turn {
	return protocol.Turn{Speaker: "A", Start: start, End: start + 1}
}

func TestQueueKeepsTheOrderTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, calls atomic.Int32
		var got []protocol.Turn
		q := NewQueue(Options{
			Recogniser: recogniser(func(context.Context, []byte) (string, error) {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				n := calls.Add(1)
				time.Sleep(time.Duration(1+n%2) * time.Second) // the second is done before the first
				return "words", nil
			}),
			Deliver: func(_ context.Context, x protocol.Turn) { got = append(got, x) },
			Failed:  func(err error) { t.Error(err) },
		})
		q.Audio(0, make([]float32, 20*sampleRate))
		for i := range 6 {
			q.Turn(turnAt(float64(2 * i)))
		}
		q.Drain(t.Context())
		if len(got) != 6 || !slices.IsSortedFunc(got, func(a, b protocol.Turn) int { return int(a.Start - b.Start) }) || got[5].Text != "words" {
			t.Errorf("delivered %v", got)
		}
		if most.Load() != atOnce || q.Stats().Recognised.Load() != 6 {
			t.Errorf("%d at once, %d recognised", most.Load(), q.Stats().Recognised.Load())
		}
	})
}

// A recogniser that fails is asked again after growing intervals, reported once, and
// costs words only; what it says in Retry-After is respected.
func TestQueueWaitsAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began, broken, reported, delivered := time.Now(), true, 0, 0
		var after time.Duration
		q := NewQueue(Options{
			Recogniser: recogniser(func(context.Context, []byte) (string, error) {
				at = append(at, time.Since(began))
				if broken {
					return "", &Error{what: "broken", retryAfter: after}
				}
				return "well", nil
			}),
			Deliver: func(context.Context, protocol.Turn) { delivered++ },
			Failed:  func(error) { reported++ },
		})
		q.Audio(0, make([]float32, 100*sampleRate))
		next := 0.0
		turns := func(n int, wait time.Duration) {
			for range n {
				q.Turn(turnAt(next))
				next += 2
				synctest.Wait()
			}
			time.Sleep(wait)
			synctest.Wait()
		}
		turns(3, 10*time.Second)
		testkit.EqualSlices(t, at, []time.Duration{0, time.Second, 3 * time.Second}, "attempts at")
		after = time.Minute
		turns(1, 2*time.Minute)
		broken = false
		turns(1, 2*time.Minute)
		broken = true
		turns(1, 2*time.Minute)
		if reported != 2 || delivered != 6 {
			t.Errorf("reported %d times, want 2; delivered %d, want 6", reported, delivered)
		}
		if s := q.Stats(); s.Failed.Load() != 5 || s.Recognised.Load() != 1 {
			t.Errorf("%d failed, %d recognised", s.Failed.Load(), s.Recognised.Load())
		}
		q.Close()
	})
}

// The words of a turn are bounded, however many parts it has.
func TestTextOfALongTurnIsBounded(t *testing.T) {
	var got protocol.Turn
	q := NewQueue(Options{
		Recogniser: recogniser(func(context.Context, []byte) (string, error) { return strings.Repeat("x", maxText), nil }),
		Deliver:    func(_ context.Context, x protocol.Turn) { got = x },
	})
	q.Audio(0, make([]float32, 60*sampleRate))
	q.Turn(protocol.Turn{Speaker: "A", End: 60})
	q.Drain(t.Context())
	testkit.Equal(t, len(got.Text), maxText, "bytes")
}

func TestQueueIsBoundedAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{
			Recogniser: recogniser(func(ctx context.Context, _ []byte) (string, error) { <-ctx.Done(); return "", ctx.Err() }),
			Deliver:    func(context.Context, protocol.Turn) {}, Failed: func(err error) { t.Error(err) },
		})
		q.Audio(0, make([]float32, 10*sampleRate))
		for i := range 300 {
			q.Turn(turnAt(float64(i % 8)))
		}
		if n := q.Stats().Dropped.Load(); n < 300-maxWaiting-atOnce-2 {
			t.Error(n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		q.Drain(ctx) // ends with ctx although the recogniser hangs
	})
}

// lengths are the lengths of parts in seconds.
func lengths(_ float64, parts [][]float32) (out []float64) {
	for _, p := range parts {
		out = append(out, float64(len(p))/sampleRate)
	}
	return out
}

func TestAudioOfATurn(t *testing.T) {
	a := (&tracks{}).track(0)
	a.Add(0, slices.Repeat([]float32{0.5}, 100*sampleRate))
	testkit.EqualSlices(t, lengths(a.take(10, 12)), []float64{2.4}, "with context")
	if _, got := a.take(20, 20.39); got != nil {
		t.Errorf("a short turn: %v", lengths(0, got))
	}
	// What another turn has taken is silent, or leaves too little.
	from, parts := a.take(11, 13)
	if from != 10.8 {
		t.Errorf("the audio begins at %v s", from)
	}
	part := parts[0]
	if at := func(seconds float64) float32 { return part[int((seconds-10.8)*sampleRate)] }; at(11.5) != 0 || at(12.5) == 0 {
		t.Errorf("at 11.5 s %v, at 12.5 s %v", at(11.5), at(12.5))
	}
	if _, got := a.take(10.5, 12.8); got != nil {
		t.Errorf("speech that was recognised: %v", lengths(0, got))
	}
	// Audio that is gone, or never came.
	a.Add(110*sampleRate, make([]float32, 300*sampleRate))
	if _, got := a.take(5, 9); got != nil {
		t.Errorf("audio that is gone: %v", lengths(0, got))
	}
	if _, got := a.take(1000, 1001); got != nil {
		t.Errorf("audio to come: %v", lengths(0, got))
	}
}

func TestLongTurnsAreCutAtPauses(t *testing.T) {
	samples := slices.Repeat([]float32{0.03}, 40*sampleRate)
	clear(samples[12*sampleRate : 12*sampleRate+sampleRate/5])
	clear(samples[22*sampleRate : 22*sampleRate+sampleRate/5])
	got := lengths(0, cut(samples))
	sum := 0.0
	for _, l := range got {
		sum += l
		if l > maxPart {
			t.Errorf("a part of %v s", l)
		}
	}
	if len(got) < 3 || got[0] < 12 || got[0] > 12.2 || got[0]+got[1] < 22 || got[0]+got[1] > 22.2 || sum != 40 {
		t.Errorf("parts %v", got)
	}
}
