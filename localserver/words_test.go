package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/localserver/engine"
	"hubbub/localserver/stream"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/protocol/words"
)

// speech is a function as a words.Recogniser.
type speech func(ctx context.Context, wav []byte) (string, error)

func (r speech) Recognise(ctx context.Context, wav []byte, _ bool) (string, []words.Word, error) {
	text, err := r(ctx, wav)
	return text, nil, err
}

// threeTurns has a turn of 0.6 s in each second.
func threeTurns() stream.Diarizer {
	return &streamtest.Diarizer{OnPush: func(n int, _ []float32) []engine.Event {
		second := time.Duration(n/10) * time.Second
		switch {
		case n > 30:
		case n%10 == 2:
			return []engine.Event{{Kind: engine.Start, At: second + 100*time.Millisecond}}
		case n%10 == 9:
			return []engine.Event{{Kind: engine.End, At: second + 700*time.Millisecond}}
		}
		return nil
	}}
}

// said sends three turns to a stream that was created with a body, and returns what
// arrives, one word a message.
func said(t *testing.T, h *host, body string) (got []string) {
	t.Helper()
	live := h.createWith(body)
	got = append(got, fmt.Sprint(live.Words))
	s := h.openAt(live)
	s.chunks(31)
	s.end()
	events, code, _ := s.rest()
	for _, e := range events {
		switch e.Type {
		case protocol.TypeText:
			got = append(got, fmt.Sprintf("%s %g %g %q", e.Transcript.Speaker, e.Transcript.Start, e.Transcript.End, e.Transcript.Text))
		case protocol.TypeSpeakerStart, protocol.TypeSpeakerEnd:
		default:
			got = append(got, e.Type+": "+e.Message)
		}
	}
	return append(got, fmt.Sprint(code))
}

// TestWords: streams that ask for words get a text for every turn, in order, also
// those of the end, and no other streams do.
func TestWords(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	h := serve(t, withEngine(threeTurns), func(o *setup) {
		o.Unpaced = true
		o.Words = speech(func(_ context.Context, wav []byte) (string, error) {
			calls.Add(1)
			return fmt.Sprintf("%s of %d", wav[:4], len(wav)), nil
		})
	})
	want := []string{"true", `SPEAKER_00 0.1 0.7 "RIFF of 28844"`, `SPEAKER_00 1.1 1.7 "RIFF of 32044"`, `SPEAKER_00 2.1 2.7 "RIFF of 32044"`, "1000"}
	if got := said(t, h, `{"words":true}`); len(got) != len(want) || got[0] != want[0] || got[4] != want[4] || !strings.HasPrefix(got[3], "SPEAKER_00 2.1 2.7 \"RIFF of ") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	testkit.Equal(t, calls.Load(), 3, "calls")
	for _, body := range []string{"", "{}", `{"words":false}`, `{"words":"yes"}`, `{"words":null}`, `{"Words":true}`} {
		testkit.EqualSlices(t, said(t, h, body), []string{"false", "1000"}, body)
	}
	if calls.Load() != 3 {
		t.Errorf("audio of streams that did not ask was recognised: %d calls", calls.Load())
	}
	if got := said(t, serve(t, withEngine(threeTurns), func(o *setup) { o.Unpaced = true }), `{"words":true}`); !slices.Equal(got, []string{"false", "1000"}) {
		t.Errorf("without a recogniser: %q", got)
	}
}

// TestStoredWords: what was said is part of turns.json, and watchers that ask receive
// it, also afterwards; other watchers see and count nothing of it.
func TestStoredWords(t *testing.T) {
	t.Parallel()
	h := serve(t, withEngine(threeTurns), func(o *setup) {
		o.Unpaced = true
		o.Words = speech(func(context.Context, []byte) (string, error) { return "Good morning.", nil })
	})
	var live protocol.LiveStream
	testkit.NoError(t, json.Unmarshal(h.do("POST", "/v1/live", testKey, strings.NewReader(`{"words":true}`)).body, &live))
	early := h.watch(live.ID, "?words=true")
	s := h.openAt(live)
	s.chunks(31)
	s.end()
	s.closes(1000)
	const text = `{"type":"text","data":{"speaker":"SPEAKER_00","start":2.1,"end":2.7,"text":"Good morning."}}`
	for query, want := range map[string]int{"": 6, "?words=false": 6, "?words=true": 9, "?words=true&from=2": 7, "?from=2": 4} {
		got := h.watch(live.ID, query).rest()
		if len(got.events) != want || slices.Contains(got.events, text) != strings.Contains(query, "true") || got.text != "done" {
			t.Errorf("%s: %q, %s", query, got.events, got.text)
		}
		if state := got.states[len(got.states)-1]; state.Timestamp != 2.7 { // the end of the last turn
			t.Errorf("%s: %v", query, got.states)
		}
	}
	if got := early.rest(); len(got.events) != 9 || got.events[8] != text {
		t.Errorf("from the beginning: %q", got.events)
	}
	h.refusal(h.watchAddress(live.ID, "?words=yes"), bearerOf(testKey)).hasStatus(t, "words=yes", 400)
	if got := h.get("media://live/" + live.ID + "/turns.json"); strings.Count(got, `"text":"Good morning."`) != 3 {
		t.Error(got)
	}
	if got := h.get("media://live/" + live.ID + "/turns.rttm"); strings.Count(got, "SPEAKER_00") != 3 || strings.Contains(got, "Good") {
		t.Error(got)
	}
}

// TestWordsThatFail: a recogniser that fails costs words, not turns or the stream, and
// is reported once.
func TestWordsThatFail(t *testing.T) {
	t.Parallel()
	h := serve(t, withEngine(threeTurns), func(o *setup) {
		o.Unpaced = true
		o.Words = speech(func(context.Context, []byte) (string, error) { return "", errors.New("secret cause") })
	})
	got := said(t, h, `{"words":true}`)
	if len(got) < 4 || got[len(got)-1] != "1000" {
		t.Fatalf("%q", got)
	}
	texts, failures := 0, 0
	for _, g := range got {
		if strings.HasPrefix(g, "SPEAKER_00 ") && strings.HasSuffix(g, ` ""`) {
			texts++
		}
		if strings.HasPrefix(g, "error: The speech recogniser of the service failed") {
			failures++
		}
	}
	if failures != 1 || texts < 1 || strings.Contains(strings.Join(got, ""), "secret") {
		t.Errorf("%d texts, %d failures: %q", texts, failures, got)
	}
}
