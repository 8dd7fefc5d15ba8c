package localserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/store"
	"hubbub/protocol"
)

// watching is one watcher, seen from its client.
type watching struct {
	*websocket.Conn
	t testing.TB
}

// watchAddress is where a stream is followed on this node.
func (h *host) watchAddress(id, query string) string {
	return "wss" + strings.TrimPrefix(h.url, "https") + "/v1/live/" + id + "/events" + query
}

func bearerOf(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

func (h *host) watch(id, query string) *watching {
	h.t.Helper()
	conn, res, err := h.dial.Dial(h.watchAddress(id, query), bearerOf(testKey))
	if err != nil {
		h.t.Fatalf("watch: %v %v", err, res)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(2 * patience))
	return &watching{conn, h.t}
}

// refusedWatch checks that a handshake is turned down.
func (h *host) refusedWatch(id, query, key string, status int) {
	h.t.Helper()
	head := http.Header{}
	if key != "" {
		head = bearerOf(key)
	}
	conn, res, err := h.dial.Dial(h.watchAddress(id, query), head)
	if err == nil {
		_ = conn.Close()
		h.t.Fatalf("watching %s as %q is let in", id, key)
	}
	if res == nil {
		h.t.Fatalf("no answer: %v", err)
	}
	read(h.t, res).apiError(h.t, status)
}

// seen is what a watcher was told.
type seen struct {
	events []string // the stream's own messages
	states []protocol.StreamState
	code   int
	text   string
}

// next reads one message into s and tells whether there may be more.
func (w *watching) next(s *seen) bool {
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
	state, ok := protocol.ParseStreamState(e)
	if !ok {
		w.t.Fatalf("state %s", raw)
	}
	s.states = append(s.states, state)
	return true
}

// until reads on until enough has been seen.
func (w *watching) until(s *seen, what string, enough func() bool) {
	w.t.Helper()
	for !enough() {
		if !w.next(s) {
			w.t.Fatalf("closed with %d %q before %s, after %d events", s.code, s.text, what, len(s.events))
		}
	}
}

func (w *watching) rest(s *seen) *seen {
	w.t.Helper()
	for w.next(s) {
	}
	return s
}

// ends checks that a stream's clock never went back and what was said last.
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

// Several watch one stream: from before its beginning, late, and again after a
// loss. Each gets the sender's messages, byte for byte, once and in order.
func TestWatch(t *testing.T) {
	book := &logbook{}
	h := serve(t, withEngine(chatty), book.use, func(o *Options) { o.Unpaced = true })
	l := h.create()
	early, all := h.watch(l.ID, ""), &seen{}
	early.until(all, "the first state", func() bool { return len(all.states) > 0 })
	if s := all.states[0]; s.Status != protocol.StatusCreated || s.Timestamp != 0 || len(all.events) != 0 {
		t.Errorf("before the stream: %+v %q", s, all.events)
	}

	sender := h.openAt(l)
	sender.chunks(5)
	var sent []protocol.Event
	for range 5 {
		sent = append(sent, sender.next())
	}
	early.until(all, "the stream's clock", func() bool { return all.states[len(all.states)-1].Timestamp >= 0.5 })
	if s := all.states[len(all.states)-1]; s.Status != protocol.StatusRunning || s.Timestamp != 0.5 || !slices.Equal(all.events, raws(sent)) {
		t.Errorf("%+v after %q", s, all.events)
	}

	late, past := h.watch(l.ID, ""), &seen{}
	late.until(past, "a state", func() bool { return len(past.states) > 0 })
	if !slices.Equal(past.events, raws(sent)) {
		t.Errorf("the past is %q", past.events)
	}
	again, rest := h.watch(l.ID, "?from=3"), &seen{}
	again.until(rest, "a state", func() bool { return len(rest.states) > 0 })
	ahead, nothing := h.watch(l.ID, "?from=7"), &seen{}
	if n := h.metric("hubbub_watchers_open"); n != 4 {
		t.Errorf("%v watchers", n)
	}

	sender.chunks(1)
	sender.end()
	more, code, _ := sender.rest()
	if sent = append(sent, more...); code != 1000 {
		t.Errorf("code %d", code)
	}
	late.rest(past).ends(t, "late", "done", "done")
	early.rest(all).ends(t, "early", "done", "done")
	again.rest(rest).ends(t, "again", "done", "done")
	ahead.rest(nothing).ends(t, "ahead", "done", "done")
	after := h.watch(l.ID, "").rest(&seen{})
	after.ends(t, "after the end", "done", "done")
	for who, got := range map[string][]string{"early": all.events, "late": past.events, "after": after.events, "again": append(raws(sent[:3]), rest.events...)} {
		if !slices.Equal(got, raws(sent)) {
			t.Errorf("%s got %q, the sender %q", who, got, raws(sent))
		}
	}
	if len(nothing.events) != 0 {
		t.Errorf("what was there already came again: %q", nothing.events)
	}
	eventually(t, "nobody", func() bool { return h.metric("hubbub_watchers_open") == 0 })
	if n := h.metric("hubbub_watchers_total"); n != 5 {
		t.Errorf("%v watchers in all", n)
	}
	if log := book.String(); strings.Contains(log, testKey) || !strings.Contains(log, "watcher came") || !strings.Contains(log, "the stream is over") {
		t.Errorf("the log: %s", log)
	}
}

// Who may not watch is told as little as who may not ask.
func TestWatchNeedsAKeyOfTheAccount(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, func(o *Options) { o.DataDir = dir })
	l := h.create()
	h.refusedWatch(l.ID, "", mustKey(t, dir, "other", PlanPro, time.Hour, time.Now()), 404)
	h.refusedWatch(l.ID, "", mustKey(t, dir, DefaultAccount, PlanNone, time.Hour, time.Now()), 402)
	h.refusedWatch(l.ID, "", "wrong", 401)
	h.refusedWatch(l.ID, "", "", 401)
	for _, id := range []string{"8d0c7a53-5f0e-4b7e-9d1a-0c9be0a4d2b6", "x", "*", "%3E"} {
		h.refusedWatch(id, "", testKey, 404)
	}
	for _, q := range []string{"?from=-1", "?from=", "?from=x", "?from=1&from=2", "?from=99999999999999999999"} {
		_, res, err := h.dial.Dial(h.watchAddress(l.ID, q), bearerOf(testKey))
		if err == nil || res == nil || res.StatusCode != 400 {
			t.Errorf("%s: %v %v", q, res, err)
		}
	}
	conn, res, err := h.dial.Dial(h.watchAddress(l.ID, ""), bearerOf(mustKey(t, dir, DefaultAccount, PlanPro, time.Hour, time.Now())))
	if err != nil {
		t.Fatalf("another key of the account: %v %v", err, res)
	}
	defer func() { _ = conn.Close() }()
	if res.Header.Get("X-Request-Id") == "" || res.Header.Get("X-Ratelimit-Limit") != "" { // there is no limit here
		t.Errorf("the handshake's answer: %v", res.Header)
	}
}

// A stream that fails tells its watchers why. The watching itself was well.
func TestWatchOfAFailedStream(t *testing.T) {
	h := serve(t)
	s := h.open()
	w, got := h.watch(s.id, ""), &seen{}
	s.chunks(2)
	w.until(got, "the start", func() bool { return len(got.events) == 1 })
	_ = s.NetConn().Close()
	w.rest(got).ends(t, "watcher", "error", "error: connection lost")
	if want := h.kept(s.id); !slices.Equal(got.events, want) || len(want) != 2 {
		t.Errorf("got %q, kept %q", got.events, want)
	}
}

// A watcher who does not read is closed with a reason, and holds nobody up. It
// comes again with what it has and misses nothing.
func TestWatchThatDoesNotRead(t *testing.T) {
	h := serve(t, func(o *Options) { o.slowAfter = 2 * time.Second })
	sender := h.open()
	sender.chunks(1)
	first := sender.next()
	// More than any buffer on the way holds; kept as if the engine had said it.
	var many [][]byte
	for i := range 8000 {
		at := 1 + float64(i)/1000
		many = append(many, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, at, strings.Repeat("x", 100)).Raw)
	}
	eventually(t, "the first event", func() bool { return len(h.kept(sender.id)) == 1 })
	for i := 0; i < len(many); i += 2000 {
		if err := h.journal.Append(context.Background(), sender.id, 1+i, many[i:i+2000]); err != nil {
			t.Fatal(err)
		}
	}
	dial := h.dial
	dial.NetDialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(8 << 10)
		}
		return conn, err
	}
	conn, res, err := dial.Dial(h.watchAddress(sender.id, ""), bearerOf(testKey))
	if err != nil {
		t.Fatalf("%v %v", err, res)
	}
	defer func() { _ = conn.Close() }()
	slow, got := &watching{conn, t}, &seen{}
	quick, whole := h.watch(sender.id, ""), &seen{}
	quick.until(whole, "everything", func() bool { return len(whole.events) == 1+len(many) })
	eventually(t, "a slow watcher", func() bool { return h.metric("hubbub_watchers_slow_total") == 1 })
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	slow.rest(got)
	if got.code != websocket.CloseTryAgainLater || got.text == "" || len(got.events) == 0 || len(got.events) > len(many) {
		t.Errorf("%d messages, closed with %d %q", len(got.events), got.code, got.text)
	}
	if got.events[0] != string(first.Raw) || !slices.Equal(got.events, whole.events[:len(got.events)]) {
		t.Error("what the slow one got is not the beginning of what there was")
	}
	again, rest := h.watch(sender.id, fmt.Sprintf("?from=%d", len(got.events))), &seen{}
	again.until(rest, "the rest", func() bool { return len(got.events)+len(rest.events) == 1+len(many) })
	if !slices.Equal(append(got.events, rest.events...), whole.events) {
		t.Error("the two parts are not the whole")
	}
	sender.end() // its next words cannot be kept behind ours; the stream itself was never held up
	if _, code, _ := sender.rest(); code != 1000 {
		t.Errorf("the sender: %d", code)
	}
}

// There are so many places, for all and for each account; who leaves makes room.
func TestWatchLimits(t *testing.T) {
	h := serve(t, func(o *Options) { o.MaxWatchers = 2 })
	l := h.create()
	first := h.watch(l.ID, "")
	h.watch(l.ID, "")
	h.refusedWatch(l.ID, "", testKey, 429)
	_ = first.Close()
	eventually(t, "room", func() bool { return h.metric("hubbub_watchers_open") == 1 })
	h.watch(l.ID, "")

	full := serve(t, func(o *Options) { o.MaxWatchers = 1000 })
	l = full.create()
	for range maxAccountWatchers {
		full.audience.enter(DefaultAccount)
	}
	full.refusedWatch(l.ID, "", testKey, 429)
	full.audience.leave(DefaultAccount)
	full.watch(l.ID, "")
	for range maxAccountWatchers - 1 {
		full.audience.leave(DefaultAccount)
	}
	counted := serve(t, limitOf(3))
	l = counted.create()
	for range 3 {
		counted.watch(l.ID, "")
	}
	counted.refusedWatch(l.ID, "", testKey, 429)
}

// A server that stops tells its watchers how their streams ended, and those
// whose streams have not, that it stops.
func TestWatchWhileTheServerStops(t *testing.T) {
	h := serve(t)
	waiting := h.watch(h.create().ID, "")
	s := h.open()
	s.chunks(1)
	s.next()
	w, got := h.watch(s.id, ""), &seen{}
	w.until(got, "the start", func() bool { return len(got.events) == 1 })
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		down <- h.Shutdown(ctx)
	}()
	s.rest()
	w.rest(got).ends(t, "watcher", "error", "error: the server was stopped")
	if len(got.events) != 2 {
		t.Errorf("%q", got.events)
	}
	if last := waiting.rest(&seen{}); last.code != websocket.CloseGoingAway {
		t.Errorf("the other one: %d %q", last.code, last.text)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// Pulses may all be lost, and the store may be away for a while: the watcher
// looks by itself, and never says that it was quiet when it could not know.
func TestWatchWithoutPulses(t *testing.T) {
	h := serve(t, withEngine(chatty), func(o *Options) { o.Unpaced, o.watchEvery = true, 20*time.Millisecond })
	h.feed = deafFeed{h.feed}
	s := h.open()
	w, got := h.watch(s.id, ""), &seen{}
	s.chunks(3)
	w.until(got, "three events", func() bool { return len(got.events) == 3 })
	s.end()
	sent, _, _ := s.rest()
	w.rest(got).ends(t, "watcher", "done", "done")
	if !slices.Equal(got.events, raws(sent)) {
		t.Errorf("got %q, sent %q", got.events, raws(sent))
	}
}

// deafFeed hears nothing, and fails every other time.
type deafFeed struct{ store.Feed }

func (deafFeed) Listen(string, func(store.Pulse)) (func(), error) {
	return nil, errors.New("deaf")
}

func (f deafFeed) Since(ctx context.Context, session string, after uint64) ([][]byte, uint64, error) {
	if time.Now().UnixNano()%2 == 0 {
		return nil, after, errors.New("away")
	}
	return f.Feed.Since(ctx, session, after)
}

// A panic costs the watcher, not the server.
func TestWatchPanic(t *testing.T) {
	h := serve(t)
	l := h.create()
	h.feed = nil
	if got := h.watch(l.ID, "").rest(&seen{}); got.code != websocket.CloseInternalServerErr {
		t.Errorf("%d %q", got.code, got.text)
	}
	h.feed = h.store
}

// A watcher holds nothing of the engine's, and no place among the streams.
func TestWatchersAreNoStreams(t *testing.T) {
	h := serve(t, func(o *Options) {
		o.MaxStreams = 1
		withEngine(func() Diarizer { return &fake{push: func(int, []float32) []engine.Event { return nil }} })(o)
	})
	s := h.open()
	for range 5 {
		h.watch(s.id, "")
	}
	if h.Stats().Open != 1 {
		t.Errorf("%+v", h.Stats())
	}
}
