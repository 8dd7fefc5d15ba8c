package localserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"hubbub/localserver/apikeys"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// testWatcher is the client's end of a watcher.
type testWatcher struct {
	*clientConn
	t testing.TB
}

// watchAddress is where a stream is watched on this node.
func (h *host) watchAddress(id, query string) string {
	return "wss" + strings.TrimPrefix(h.url, "https") + "/v1/live/" + id + "/events" + query
}

func bearerOf(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

func (h *host) watch(id, query string) *testWatcher {
	h.t.Helper()
	conn, res, err := h.dial.Dial(h.watchAddress(id, query), bearerOf(testKey))
	if err != nil {
		h.t.Fatalf("watch: %v %v", err, res)
	}
	return &testWatcher{newClientConn(h.t, conn), h.t}
}

// seen is what a watcher has received.
type seen struct {
	events []string // the stream's own messages
	states []protocol.StreamState
	code   int
	text   string
}

// next reads one message into s and reports whether there may be more.
func (w *testWatcher) next(s *seen) bool {
	w.t.Helper()
	_, raw, err := w.ReadMessage()
	var c *websocket.CloseError
	if errors.As(err, &c) {
		s.code, s.text = c.Code, c.Text
		return false
	}
	if err != nil {
		w.t.Fatalf("no close: %v", err)
	}
	e, err := protocol.ParseEvent(raw)
	if err != nil {
		w.t.Fatalf("message %q: %v", raw, err)
	}
	if e.Type != protocol.TypeStreamState {
		s.events = append(s.events, string(raw))
		return true
	}
	if e.State == nil {
		w.t.Fatalf("state %s", raw)
	}
	s.states = append(s.states, *e.State)
	return true
}

// until reads until enough has been received.
func (w *testWatcher) until(s *seen, what string, enough func() bool) {
	w.t.Helper()
	for !enough() {
		if !w.next(s) {
			w.t.Fatalf("closed with %d %q before %s, after %d events", s.code, s.text, what, len(s.events))
		}
	}
}

func (w *testWatcher) rest(s *seen) *seen {
	w.t.Helper()
	for w.next(s) {
	}
	return s
}

// ends checks that the clock never went back, the last state and the close
// text.
func (s *seen) ends(t *testing.T, who, status, text string) {
	t.Helper()
	if s.code != websocket.CloseNormalClosure || s.text != text {
		t.Errorf("%s: closed with %d %q, want %q", who, s.code, s.text, text)
	}
	for i := 1; i < len(s.states); i++ {
		if s.states[i].Timestamp < s.states[i-1].Timestamp {
			t.Errorf("%s: the clock goes back: %v", who, s.states)
		}
	}
	if n := len(s.states); n == 0 || s.states[n-1].Status != status {
		t.Errorf("%s: last state of %v is not %s", who, s.states, status)
	}
}

// The parameters of a watch; contract rules test its other refusals.
func TestWatchQuery(t *testing.T) {
	for query, want := range map[string]struct {
		from  int
		words bool
		field string // that is invalid
	}{
		"": {}, "from=0": {}, "from=7&words=true": {from: 7, words: true}, "words=false": {}, "words=": {},
		"from=-1": {field: "from"}, "from=": {field: "from"}, "from=x": {field: "from"},
		"from=99999999999999999999": {field: "from"}, "words=yes": {field: "words"},
	} {
		values := testkit.Must(url.ParseQuery(query))(t)
		from, words, err := watchQuery(values)
		invalid, refused := errors.AsType[*protocol.ValidationErrorResponse](err)
		if from != want.from || words != want.words || refused != (want.field != "") || refused && invalid.Errors[0].Field != want.field {
			t.Errorf("%s: %d, %v, %v", query, from, words, err)
		}
	}
}

// Watchers get the error messages of the stream, of its frames and of its end,
// and count them as no events.
func TestWatchErrors(t *testing.T) {
	t.Parallel()
	h := serve(t)
	s := h.open()
	w, got := h.watch(s.id, ""), &seen{}
	s.chunks(1)
	w.until(got, "the start", func() bool { return len(got.events) == 1 })
	testkit.NoError(t, s.WriteMessage(websocket.BinaryMessage, []byte("no chunk")))
	w.until(got, "the error message", func() bool { return len(got.events) == 2 })
	testkit.Equal(t, got.events[1], `{"type":"error","message":"Invalid chunk size"}`, got.events)
	for range 1000 { // too far ahead of real time, however slow this machine is
		if s.WriteMessage(websocket.BinaryMessage, quiet) != nil {
			break
		}
	}
	if _, code, text := s.rest(); code != websocket.ClosePolicyViolation { // although it did not stop sending
		t.Errorf("the sender: code %d %q", code, text)
	}
	w.rest(got).ends(t, "watcher", "error", "error: more than 5 s ahead of real time")
	slices.Sort(got.events[1:]) // an error message may arrive before the events around it
	if n := len(got.events); n != 4 || !strings.Contains(got.events[1], "speaker_end") || !strings.Contains(got.events[2], "more than 5 s ahead") {
		t.Errorf("got %q", got.events)
	}
	late := h.watch(s.id, "").rest(&seen{})
	testkit.Equal(t, len(late.events), 2, "error messages are stored", late.events)
}

// A client that sends invalid frames only does not fill the queue of a watcher.
func TestWatchManyErrors(t *testing.T) {
	t.Parallel()
	h := serve(t)
	s := h.open()
	w, got := h.watch(s.id, ""), &seen{}
	w.until(got, "a state", func() bool { return len(got.states) > 0 })
	for range 2000 {
		testkit.NoError(t, s.WriteMessage(websocket.BinaryMessage, []byte("no chunk")))
	}
	s.end()
	if events, code, _ := s.rest(); code != 1000 || len(events) != 2000 {
		t.Errorf("the sender: code %d, %d messages", code, len(events))
	}
	w.rest(got).ends(t, "watcher", "done", "done")
	dropped := h.metric(`hubbub_dropped_total{what="watch"}`)
	if len(got.events) == 0 || dropped == 0 || float64(len(got.events))+dropped > 2000 {
		t.Errorf("%d messages, %v dropped", len(got.events), dropped)
	}
}

// Watchers are limited, on the node and for each account.
func TestWatchLimits(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.MaxStreams = 1 })
	const others = minWatchers - 2
	for range others {
		_ = h.watchers.Acquire("other")
	}
	l := h.create()
	first := h.watch(l.ID, "")
	h.watch(l.ID, "")
	h.refusal(h.watchAddress(l.ID, ""), bearerOf(testKey)).apiError(t, 429)
	_ = first.Close()
	testkit.Eventually(t, "room", func() bool { return h.metric("hubbub_watchers_open") == others+1 })
	h.watch(l.ID, "")
	for range others {
		h.watchers.Release("other")
	}

	full := serve(t, func(o *setup) { o.MaxStreams = maxAccountWatchers })
	l = full.create()
	for range maxAccountWatchers {
		_ = full.watchers.Acquire(apikeys.DefaultAccount)
	}
	full.refusal(full.watchAddress(l.ID, ""), bearerOf(testKey)).apiError(t, 429)
	full.watchers.Release(apikeys.DefaultAccount)
	full.watch(l.ID, "")
	for range maxAccountWatchers - 1 {
		full.watchers.Release(apikeys.DefaultAccount)
	}
	counted := serve(t, limitOf(3))
	l = counted.create()
	for range 3 {
		counted.watch(l.ID, "")
	}
	counted.refusal(counted.watchAddress(l.ID, ""), bearerOf(testKey)).apiError(t, 429)
}

// Watchers of a server that stops learn how their streams ended, or that it
// stops.
func TestWatchWhileTheServerStops(t *testing.T) {
	t.Parallel()
	h := serve(t)
	waiting := h.watch(h.create().ID, "")
	s := h.open()
	s.chunks(1)
	s.next()
	w, got := h.watch(s.id, ""), &seen{}
	w.until(got, "the start", func() bool { return len(got.events) == 1 })
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
		defer cancel()
		down <- h.Shutdown(ctx)
	}()
	s.rest()
	w.rest(got).ends(t, "watcher", "error", "error: the server was stopped")
	testkit.Equal(t, len(got.events), 2, got.events)
	if last := waiting.rest(&seen{}); last.code != websocket.CloseGoingAway {
		t.Errorf("the other one: %d %q", last.code, last.text)
	}
	testkit.NoError(t, <-down)
}
