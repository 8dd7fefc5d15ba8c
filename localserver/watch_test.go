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

// watchAddress is where a stream is watched on this node.
func (h *host) watchAddress(id, query string) string {
	return "wss" + strings.TrimPrefix(h.url, "https") + "/v1/live/" + id + "/events" + query
}

func bearerOf(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

// testWatcher is the client's end of a watcher, and what it has received.
type testWatcher struct {
	*clientConn
	t      testing.TB
	events []string // the stream's own messages
	states []protocol.StreamState
	code   int
	text   string
}

func (h *host) watch(id, query string) *testWatcher {
	h.t.Helper()
	return h.watchWith(testKey, id, query)
}

// watchWith watches a stream with an API key.
func (h *host) watchWith(key, id, query string) *testWatcher {
	h.t.Helper()
	conn, res, err := h.dial.Dial(h.watchAddress(id, query), bearerOf(key))
	if err != nil {
		h.t.Fatalf("watch: %v %v", err, res)
	}
	return &testWatcher{clientConn: newClientConn(h.t, conn), t: h.t}
}

// next receives one message and reports whether there may be more.
func (w *testWatcher) next() bool {
	w.t.Helper()
	_, raw, err := w.ReadMessage()
	if c, ok := errors.AsType[*websocket.CloseError](err); ok {
		w.code, w.text = c.Code, c.Text
		return false
	}
	testkit.NoError(w.t, err)
	e := testkit.Must(protocol.ParseEvent(raw))(w.t)
	if e.Type == protocol.TypeStreamState {
		w.states = append(w.states, *e.State)
	} else {
		w.events = append(w.events, string(raw))
	}
	return true
}

// until receives so many messages of the stream.
func (w *testWatcher) until(events int) {
	w.t.Helper()
	for len(w.events) < events {
		if !w.next() {
			w.t.Fatalf("closed with %d %q after %d events of %d", w.code, w.text, len(w.events), events)
		}
	}
}

// rest receives everything to the end.
func (w *testWatcher) rest() *testWatcher {
	w.t.Helper()
	for w.next() {
	}
	return w
}

// ends receives everything to the end, and checks that the clock never went back, the last
// state and the close text.
func (w *testWatcher) ends(who, status, text string) {
	w.t.Helper()
	if w.rest(); w.code != websocket.CloseNormalClosure || w.text != text {
		w.t.Errorf("%s: closed with %d %q, want %q", who, w.code, w.text, text)
	}
	for i := 1; i < len(w.states); i++ {
		if w.states[i].Timestamp < w.states[i-1].Timestamp {
			w.t.Errorf("%s: the clock goes back: %v", who, w.states)
		}
	}
	if n := len(w.states); n == 0 || w.states[n-1].Status != status {
		w.t.Errorf("%s: last state of %v is not %s", who, w.states, status)
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
	w := h.watch(s.id, "")
	s.chunks(1)
	w.until(1) // the start
	testkit.NoError(t, s.WriteMessage(websocket.BinaryMessage, []byte("no chunk")))
	w.until(2)
	testkit.Equal(t, w.events[1], `{"type":"error","message":"Invalid chunk size"}`, w.events)
	for range 1000 { // too far ahead of real time, however slow this machine is
		if s.WriteMessage(websocket.BinaryMessage, quiet) != nil {
			break
		}
	}
	if _, code, text := s.rest(); code != websocket.ClosePolicyViolation { // although it did not stop sending
		t.Errorf("the sender: code %d %q", code, text)
	}
	w.ends("watcher", "error", "error: more than 5 s ahead of real time")
	slices.Sort(w.events[1:]) // an error message may arrive before the events around it
	if n := len(w.events); n != 4 || !strings.Contains(w.events[1], "speaker_end") || !strings.Contains(w.events[2], "more than 5 s ahead") {
		t.Errorf("got %q", w.events)
	}
	late := h.watch(s.id, "").rest()
	testkit.Equal(t, len(late.events), 2, "error messages are stored", late.events)
}

// A client that sends invalid frames only does not fill the queue of a watcher.
func TestWatchManyErrors(t *testing.T) {
	t.Parallel()
	h := serve(t)
	s := h.open()
	w := h.watch(s.id, "")
	w.next() // a state
	for range 2000 {
		testkit.NoError(t, s.WriteMessage(websocket.BinaryMessage, []byte("no chunk")))
	}
	s.end()
	if events, code, _ := s.rest(); code != 1000 || len(events) != 2000 {
		t.Errorf("the sender: code %d, %d messages", code, len(events))
	}
	w.ends("watcher", "done", "done")
	dropped := h.metric(`hubbub_dropped_total{what="watch"}`)
	if len(w.events) == 0 || dropped == 0 || float64(len(w.events))+dropped > 2000 {
		t.Errorf("%d messages, %v dropped", len(w.events), dropped)
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
	w := h.watch(s.id, "")
	w.until(1) // the start
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
		defer cancel()
		down <- h.Shutdown(ctx)
	}()
	s.rest()
	w.ends("watcher", "error", "error: the server was stopped")
	testkit.Equal(t, len(w.events), 2, w.events)
	testkit.Equal(t, waiting.rest().code, websocket.CloseGoingAway, "the other one", waiting.text)
	testkit.NoError(t, <-down)
}
