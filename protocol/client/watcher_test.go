package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// watchLimit is long enough for every step of a test.
const watchLimit = time.Hour

// watchStep is what a server does with one connection of a watcher.
type watchStep struct {
	status int    // of a refusal; 0 = the connection is opened
	retry  string // Retry-After of a refusal
	do     func(conn *websocket.Conn)
}

// watch runs steps on a server over TLS, one for each connection. It returns a
// client and the queries of the handshakes.
func watch(t *testing.T, steps ...watchStep) (*Client, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var queries []string
	address, ca := protocoltest.ServeTLS(t, protocoltest.Service{Watch: func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n := len(queries)
		queries = append(queries, r.URL.RawQuery)
		mu.Unlock()
		if r.URL.Path != "/v1/live/id-1/events" || r.Header.Get("Authorization") != "Bearer "+testKey || strings.Contains(r.URL.RawQuery, testKey) {
			t.Errorf("handshake %s %v", r.URL, r.Header)
		}
		step := steps[min(n, len(steps)-1)]
		if step.status != 0 {
			if step.retry != "" {
				w.Header().Set("Retry-After", step.retry)
			}
			protocoltest.Respond(step.status, `{"requestId":"r-1","message":"no"}`, "Content-Type", "application/json")(w, r)
			return
		}
		if conn := protocoltest.Upgrade(w, r); conn != nil {
			defer conn.Close()
			step.do(conn)
		}
	}}.Handler(), nil)
	c := newTestClient(t, Options{BaseURL: address, CACert: ca})
	c.config.backOff = backOffOf(time.Millisecond)
	return c, func() []string { mu.Lock(); defer mu.Unlock(); return append([]string(nil), queries...) }
}

func says(messages ...string) func(*websocket.Conn) {
	return func(conn *websocket.Conn) {
		for _, m := range messages {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(m))
		}
	}
}

func closes(code int, text string, messages ...string) func(*websocket.Conn) {
	return func(conn *websocket.Conn) {
		says(messages...)(conn)
		protocoltest.CloseWith(conn, code, text)
	}
}

const (
	startA = `{"type":"diarization_speaker_start","data":{"timestamp":1,"speaker":"A"}}`
	endA   = `{"type":"diarization_speaker_end","data":{"timestamp":2,"speaker":"A"}}`
	startB = `{"type":"diarization_speaker_start","data":{"timestamp":3,"speaker":"B"}}`
	error1 = `{"type":"error","message":"Invalid chunk size"}`
	state1 = `{"type":"stream_state","data":{"status":"running","timestamp":2.5}}`
)

// Connections break in every way. Each message arrives once, in order; messages
// about the state of the stream are not counted.
func TestWatcherReconnects(t *testing.T) {
	c, queries := watch(t,
		watchStep{do: says(startA, error1, state1)},                                 // the connection is dropped
		watchStep{status: 503, retry: "1"},                                          // nothing yet
		watchStep{do: closes(websocket.CloseTryAgainLater, "slow", endA)},           // too slow
		watchStep{do: closes(websocket.CloseGoingAway, "stopping")},                 // another node next
		watchStep{do: closes(websocket.CloseNormalClosure, "done", startB, state1)}, // the end
	)
	var waits []time.Duration
	backOff := c.config.backOff
	c.config.backOff = func(attempt int, err error) time.Duration {
		waits = append(waits, backOff(attempt, err))
		return time.Millisecond
	}
	w := testkit.Must(c.Watch(context.Background(), "id-1", watchLimit, true))(t)
	defer w.Close()
	var got []string
	states := 0
	for u := range w.Updates() {
		e := u.Event
		if s := e.State; s != nil {
			states++
			if s.Status != protocol.StatusRunning || s.Timestamp != 2.5 {
				t.Errorf("%+v", s)
			}
			continue
		}
		got = append(got, string(e.Raw))
	}
	if strings.Join(got, "") != startA+error1+endA+startB || states != 2 {
		t.Errorf("got %q and %d states", got, states)
	}
	if end := w.Wait(); end.Reason != Completed || end.Text != "done" || end.Err != nil {
		t.Errorf("%+v", end)
	}
	testkit.Equal(t, strings.Join(queries(), " "), "words=true from=1&words=true from=1&words=true from=2&words=true from=2&words=true", "asked for")
	if st := w.Status(); st.Losses != 3 || st.Lost != nil || st.LastError != nil {
		t.Errorf("%+v", st)
	}
	// The service asked for a second once; the rest is back-off.
	if len(waits) != 4 || waits[1] != time.Second || waits[0] != time.Millisecond {
		t.Errorf("waits %v", waits)
	}
}

// A refusal that time does not change ends a watcher, at its start or later.
func TestWatcherRefused(t *testing.T) {
	for _, status := range []int{401, 402, 404} {
		c, _ := watch(t, watchStep{status: status})
		_, err := c.Watch(context.Background(), "id-1", watchLimit, false)
		var response *ResponseError
		if !errors.As(err, &response) || response.Status != status || response.Hint() == "" || strings.Contains(response.Hint(), "token") {
			t.Errorf("%d: %v", status, err)
		}
		c, queries := watch(t, watchStep{do: says(startA)}, watchStep{status: status})
		w := testkit.Must(c.Watch(context.Background(), "id-1", watchLimit, false))(t)
		n := 0
		for range w.Updates() {
			n++
		}
		if end := w.Wait(); !errors.As(end.Err, &response) || response.Status != status || n != 1 || len(queries()) != 2 {
			t.Errorf("%d later: %+v, %d messages, %q", status, end, n, queries())
		}
	}
	for _, h := range []http.HandlerFunc{respond(200, "text/html", "<title>Log in</title>"), respond(403, "text/html", "<title>No</title>"), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.org/x", http.StatusFound)
	}} { // no request before was answered by the service
		if _, err := clientOf(t, h).Watch(t.Context(), "id-1", watchLimit, false); err == nil || strings.Contains(hint.Of(err), "--public-url") || !strings.Contains(hint.Of(err), "log") {
			t.Errorf("%v; %s", err, hint.Of(err))
		}
	}
	silent := protocoltest.Listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	_, err := newTestClient(t, Options{BaseURL: "http://" + silent, Timeout: 100 * time.Millisecond}).Watch(t.Context(), "id-1", watchLimit, false)
	explained(t, err, "", "check that it is the service's")
	c, _ := watch(t, watchStep{status: 404})
	for _, id := range []string{"", "..", "a/b", `a\b`} {
		_, err := c.Watch(context.Background(), id, watchLimit, false)
		explained(t, err, "is not the id of a stream", "")
	}
}

// Reconnecting has a limit, and Close ends a watcher at any time.
func TestWatcherLimit(t *testing.T) {
	c, queries := watch(t, watchStep{do: says(startA)}, watchStep{status: 503})
	c.config.backOff = func(attempt int, _ error) time.Duration { // the third attempt is at the limit
		return map[bool]time.Duration{false: time.Millisecond, true: watchLimit}[attempt > 2]
	}
	w := testkit.Must(c.Watch(context.Background(), "id-1", time.Second, false))(t)
	for range w.Updates() {
	}
	if end := w.Wait(); end.Err == nil || !strings.Contains(end.Err.Error(), "not replaced within 1s") || !strings.Contains(end.Err.Error(), "503") || len(queries()) != 4 {
		t.Errorf("%+v after %q", end, queries())
	}

	for _, step := range []watchStep{{status: 503}, {do: func(conn *websocket.Conn) { _, _, _ = conn.ReadMessage() }}} {
		c, _ := watch(t, watchStep{do: says(startA)}, step)
		w := testkit.Must(c.Watch(context.Background(), "id-1", watchLimit, false))(t)
		<-w.Updates()
		w.Close() // nobody receives any more
		if end := w.Wait(); end.Reason != Cancelled {
			t.Errorf("%+v", end)
		}
	}
}
