package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"hubbub/localserver/engine"
	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// The streams that an earlier process has left are ended, and their events are
// completed, wherever the process was interrupted.
func TestStreamsOfAnEarlierProcessAreEnded(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	h := serve(t, log.use)
	ctx, now := context.Background(), time.Now()
	ev := func(kind engine.Kind, at float64, speaker int) []byte {
		typ := protocol.TypeSpeakerStart
		if kind == engine.End {
			typ = protocol.TypeSpeakerEnd
		}
		return protocol.NewSpeakerEvent(typ, at, protocol.SpeakerLabel(speaker)).Raw
	}
	on, off := engine.Start, engine.End
	cases := map[string]struct {
		stored   [][]byte
		snapshot time.Duration // the audio received when it was taken; 0 = none
		added    []string
	}{
		"nothing":  {nil, 0, nil},
		"complete": {[][]byte{ev(on, 0, 0), ev(off, 1, 0)}, 9 * time.Second, nil},
		"one":      {[][]byte{ev(on, 0, 0), ev(off, 1, 0), ev(on, 2, 1)}, 0, []string{string(ev(off, 2.001, 1))}},
		"long":     {[][]byte{ev(on, 0, 0), ev(off, 1, 0), ev(on, 2, 1)}, 9 * time.Second, []string{string(ev(off, 9, 1))}},
		"earlier":  {[][]byte{ev(on, 0, 0), ev(off, 1, 0), ev(on, 2, 1)}, time.Second, []string{string(ev(off, 2.001, 1))}},
		"two": {[][]byte{ev(on, 0, 0), ev(on, 0.5, 1), ev(on, 0.7, 2), ev(off, 0.9, 1)}, 0,
			[]string{string(ev(off, 0.9, 0)), string(ev(off, 0.9, 2))}},
		"damaged": {[][]byte{ev(on, 0, 0), []byte("damaged"), ev(on, 0.5, 1)}, 0,
			[]string{string(ev(off, 0.5, 0)), string(ev(off, 0.501, 1))}},
	}
	for id, c := range cases {
		rec := store.Stream{ID: id, Input: json.RawMessage("{}"), Expires: now.Add(time.Minute)}
		testkit.NoError(t, errors.Join(h.store.Create(ctx, rec, "secret"), h.store.Append(ctx, id, 0, c.stored)))
		testkit.NoError(t, h.store.Begin(ctx, id, "secret", store.Claim{Node: "dead", Attempt: id}, now))
		if c.snapshot > 0 {
			testkit.NoError(t, h.store.PutSnapshot(ctx, id, nil, c.snapshot))
		}
	}
	for range 2 { // the second time there is nothing to do
		testkit.NoError(t, h.expireEarlier(ctx))
	}
	for id, c := range cases {
		if rec, err := h.store.Get(ctx, id); err != nil || rec.Status != store.Failed || rec.Cause == "" {
			t.Errorf("%s: %+v %v", id, rec, err)
		}
		got, err := h.store.Messages(ctx, id)
		if err != nil || len(got) != len(c.stored)+len(c.added) {
			t.Errorf("%s: %q %v", id, got, err)
			continue
		}
		for i, want := range c.added {
			if string(got[len(c.stored)+i]) != want {
				t.Errorf("%s: added %q, want %q", id, got[len(c.stored):], c.added)
			}
		}
	}
	if n := log.count("an event of a stream is ignored"); n != 1 {
		t.Errorf("a damaged event was logged %d times", n)
	}
}
