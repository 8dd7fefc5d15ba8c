package protocol

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// watched is what a server does with the connections of one watcher, one after
// the other. A step that returns false answers with a status instead.
type watchStep struct {
	status int    // of a refusal; 0 = the connection is opened
	retry  string // Retry-After of a refusal
	do     func(conn *websocket.Conn)
}

// watch runs steps on a real server over TLS and watches it. It returns the
// queries of the handshakes as well.
func watch(t *testing.T, steps ...watchStep) (*Client, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var queries []string
	upgrader := websocket.Upgrader{}
	address, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(step.status)
			_, _ = w.Write([]byte(`{"requestId":"r-1","message":"no"}`))
			return
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		step.do(conn)
	}), nil)
	c := newTestClient(t, ClientOptions{BaseURL: address, CACert: ca})
	c.watch = watchConfig{first: time.Millisecond, most: 4 * time.Millisecond, giveUp: time.Hour}
	c.wait = sleep
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
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(patience))
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, _, _ = conn.ReadMessage()
	}
}

const (
	startA = `{"type":"diarization_speaker_start","data":{"timestamp":1,"speaker":"A"}}`
	endA   = `{"type":"diarization_speaker_end","data":{"timestamp":2,"speaker":"A"}}`
	startB = `{"type":"diarization_speaker_start","data":{"timestamp":3,"speaker":"B"}}`
	state1 = `{"type":"stream_state","data":{"status":"running","timestamp":2.5}}`
)

// Connections break in every way; the messages come once each, in order, and
// those that say how far the stream is do not count.
func TestWatchComesBack(t *testing.T) {
	c, queries := watch(t,
		watchStep{do: says(startA, state1)},                                         // the connection is dropped
		watchStep{status: 503, retry: "1"},                                          // nothing yet
		watchStep{do: closes(websocket.CloseTryAgainLater, "slow", endA)},           // too slow
		watchStep{do: closes(websocket.CloseGoingAway, "stopping")},                 // another node next
		watchStep{do: closes(websocket.CloseNormalClosure, "done", startB, state1)}, // the end
	)
	var waits []time.Duration
	c.wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	w, err := c.Watch(context.Background(), "id-1")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var got []string
	states := 0
	for e := range w.Events() {
		if s, ok := ParseStreamState(e); ok {
			states++
			if s.Status != StatusRunning || s.Timestamp != 2.5 {
				t.Errorf("%+v", s)
			}
			continue
		}
		got = append(got, string(e.Raw))
	}
	if strings.Join(got, "") != startA+endA+startB || states != 2 {
		t.Errorf("got %q and %d states", got, states)
	}
	if end := w.Wait(); end.Reason != Completed || end.Text != "done" || end.Err != nil {
		t.Errorf("%+v", end)
	}
	if q := strings.Join(queries(), " "); q != " from=1 from=1 from=2 from=2" {
		t.Errorf("asked for %q", q)
	}
	if st := w.Stats(); st.Lost != 3 || st.Trouble != "" {
		t.Errorf("%+v", st)
	}
	// The service asked for a second once; the rest is back-off.
	if len(waits) != 4 || waits[1] < time.Second/2 || waits[0] > time.Millisecond {
		t.Errorf("waits %v", waits)
	}
}

// What will not get better ends a watch, at its beginning or later.
func TestWatchIsRefused(t *testing.T) {
	for _, status := range []int{401, 402, 404} {
		c, _ := watch(t, watchStep{status: status})
		_, err := c.Watch(context.Background(), "id-1")
		var answer *APIError
		if !errors.As(err, &answer) || answer.Status != status || answer.Hint() == "" || strings.Contains(answer.Hint(), "token") {
			t.Errorf("%d: %v", status, err)
		}
		c, queries := watch(t, watchStep{do: says(startA)}, watchStep{status: status})
		w, err := c.Watch(context.Background(), "id-1")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for range w.Events() {
			n++
		}
		if end := w.Wait(); end.Reason != Rejected || !errors.As(end.Err, &answer) || answer.Status != status || n != 1 || len(queries()) != 2 {
			t.Errorf("%d later: %+v, %d messages, %q", status, end, n, queries())
		}
	}
	c, _ := watch(t, watchStep{status: 404})
	for _, id := range []string{"", "..", "a/b", `a\b`} {
		if _, err := c.Watch(context.Background(), id); err == nil || hintOf(err) == "" {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// It is not tried for ever; and Close ends it at any time.
func TestWatchGivesUp(t *testing.T) {
	c, queries := watch(t, watchStep{do: says(startA)}, watchStep{status: 503})
	c.watch.giveUp = time.Second
	w, err := c.Watch(context.Background(), "id-1")
	if err != nil {
		t.Fatal(err)
	}
	for range w.Events() {
	}
	if end := w.Wait(); end.Err == nil || !strings.Contains(end.Err.Error(), "there was no new one") || !strings.Contains(end.Err.Error(), "503") || len(queries()) < 3 {
		t.Errorf("%+v after %q", end, queries())
	}

	for _, step := range []watchStep{{status: 503}, {do: func(conn *websocket.Conn) { _, _, _ = conn.ReadMessage() }}} {
		c, _ := watch(t, watchStep{do: says(startA)}, step)
		w, err := c.Watch(context.Background(), "id-1")
		if err != nil {
			t.Fatal(err)
		}
		<-w.Events()
		_ = w.Close() // nobody takes anything any more
		if end := w.Wait(); end.Reason != Cancelled {
			t.Errorf("%+v", end)
		}
	}
}

// A message of this kind is read only when it is whole.
func TestParseStreamState(t *testing.T) {
	for raw, want := range map[string]bool{
		state1: true, startA: false, `{"type":"stream_state"}`: false, `{"type":"stream_state","data":{"timestamp":-1}}`: false,
		`{"type":"stream_state","data":{"timestamp":"x"}}`: false, `{"type":"stream_state","data":{"timestamp":1e99}}`: false, `[`: false,
	} {
		e, _ := ParseEvent([]byte(raw))
		if _, ok := ParseStreamState(e); ok != want {
			t.Errorf("%s: %v", raw, ok)
		}
	}
	e, err := ParseEvent(NewStreamStateEvent(StreamState{StatusDone, 1.5}).Raw)
	if s, ok := ParseStreamState(e); err != nil || !ok || s != (StreamState{StatusDone, 1.5}) {
		t.Errorf("%+v %v", s, err)
	}
}
