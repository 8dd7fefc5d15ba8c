package localserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/limits"
	"hubbub/localserver/stream"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

func TestShutdownFinishesOpenStreams(t *testing.T) {
	t.Parallel()
	h := serve(t)
	waiting := h.create()
	s := h.open()
	s.chunks(3)
	if e := s.next(); e.Type != protocol.TypeSpeakerStart {
		t.Fatalf("got %s", e.Raw)
	}
	testkit.Eventually(t, "chunks", func() bool { return h.counters.Chunks.Load() == 3 })

	// While a stream finishes, no new one is accepted, with a reason.
	gate := make(chan struct{})
	slow := h.openGated(t, gate)
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
		defer cancel()
		down <- h.Shutdown(ctx)
	}()
	events, code, _ := s.rest()
	if code != websocket.CloseGoingAway || len(events) != 1 || events[0].Type != protocol.TypeSpeakerEnd || events[0].Timestamp != 0.3 {
		t.Errorf("code %d %q", code, raws(events))
	}
	// Its audio was cut off by the server, so it is not done.
	if st := h.status(s.id); st.Status != "error" || st.CompletedAt == nil {
		t.Errorf("%+v", st)
	}
	h.do("POST", "/v1/live", testKey, nil).apiError(t, 503)
	h.do("GET", "/readyz", "", nil).apiError(t, 503)
	h.refused(waiting.URL, 503)
	h.do("GET", "/healthz", "", nil).hasStatus(t, "healthz", 200)
	close(gate)
	slow.closes(websocket.CloseGoingAway)
	h.http.CloseIdleConnections()
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := h.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	if conn, err := net.DialTimeout("tcp", h.Addr().String(), testkit.Timeout); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}

// openGated opens a stream whose diarizer finishes when gate is closed.
func (h *host) openGated(t *testing.T, gate chan struct{}) *testStream {
	t.Helper()
	before := h.Server.options.NewDiarizer
	defer func() { h.Server.options.NewDiarizer = before }()
	h.Server.options.NewDiarizer = func() (stream.Diarizer, error) {
		return &streamtest.Diarizer{OnFlush: func(int) []engine.Event { <-gate; return nil }}, nil
	}
	return h.open()
}

// While a server drains, open streams continue and new ones are refused; it
// returns when the last one has ended.
func TestDrainWaitsForOpenStreams(t *testing.T) {
	t.Parallel()
	h := serve(t)
	waiting := h.create()
	s := h.open()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		h.Drain(context.Background())
	}()
	testkit.Eventually(t, "draining", func() bool { return h.streams.Available("") == limits.ErrStopping })
	h.do("GET", "/readyz", "", nil).apiError(t, 503)
	h.do("POST", "/v1/live", testKey, nil).apiError(t, 503)
	h.refused(waiting.URL, 503)
	h.submit("diarize", `{"url":"media://x"}`) // everything but streams works as before
	s.chunks(3)
	if e := s.next(); e.Type != protocol.TypeSpeakerStart {
		t.Fatalf("got %s", e.Raw)
	}
	select {
	case <-drained:
		t.Error("drained with an open stream")
	default:
	}
	s.end()
	s.closes(websocket.CloseNormalClosure)
	<-drained
	if st := h.status(s.id); st.Status != protocol.StatusDone {
		t.Errorf("%+v", st)
	}
}

// Draining ends with its context; the streams that are left are finished by the
// shutdown.
func TestDrainEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h := serve(t)
	s := h.open()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h.Drain(ctx)
	go func() { _ = h.Shutdown(context.Background()) }()
	s.closes(websocket.CloseGoingAway)
	if err := h.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
}

// When the time is over, what is still open is disconnected. The error is one line, with a
// hint.
func TestShutdownDisconnectsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	h := serve(t)
	s := h.openGated(t, gate)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	time.AfterFunc(100*time.Millisecond, func() { close(gate) })
	err := h.Server.Shutdown(ctx)
	if text := fmt.Sprint(err); !errors.Is(err, context.Canceled) || !strings.Contains(text, "disconnected") ||
		strings.Contains(text, "\n") || hint.Of(err) == "" {
		t.Errorf("shutdown: %v, %q", err, hint.Of(err))
	}
	if _, _, err := s.ReadMessage(); err == nil {
		t.Error("the stream is still open")
	}
	if err := h.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
}

func TestListenerThatBreaksEndsTheServer(t *testing.T) {
	t.Parallel()
	h := serve(t)
	s := h.open()
	_ = h.listener.Close()
	s.closes(websocket.CloseGoingAway)
	if err := h.Wait(); err == nil || !strings.Contains(err.Error(), "no more connections") {
		t.Errorf("wait: %v", err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	taken := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	data := t.TempDir()
	serve(t, func(o *setup) { o.DataDir = data })
	for name, c := range map[string]struct {
		change func(*setup)
		want   string
	}{
		"port in use":    {func(o *setup) { o.Addr = taken.Addr().String() }, "in use"},
		"no port":        {func(o *setup) { o.Addr = "localhost" }, "HOST:PORT"},
		"metrics port":   {func(o *setup) { o.MetricsAddr = "localhost" }, "HOST:PORT"},
		"taken metrics":  {func(o *setup) { o.MetricsAddr = taken.Addr().String() }, "in use"},
		"wrong port":     {func(o *setup) { o.Addr = "127.0.0.1:99999" }, "99999"},
		"unknown host":   {func(o *setup) { o.Addr = "no-such-host.invalid:0" }, "no-such-host.invalid"},
		"not ours":       {func(o *setup) { o.Addr = "192.0.2.1:0" }, "192.0.2.1"},
		"no key":         {func(o *setup) { o.APIKeys = nil }, "API key"},
		"empty key":      {func(o *setup) { o.APIKeys = []string{"a", ""} }, "API key"},
		"key with space": {func(o *setup) { o.APIKeys = []string{"a b"} }, "API key"},
		"public address": {func(o *setup) { o.PublicURL = "talk.example.org" }, "talk.example.org"},
		"public port":    {func(o *setup) { o.PublicURL = "https://x:70000" }, "https://x:70000"},
		"public name":    {func(o *setup) { o.PublicURL = "https://bücher.example" }, "https://b"},
		"listening name": {func(o *setup) { o.Addr = "bücher.invalid:0" }, "bücher.invalid"},
		"public query":   {func(o *setup) { o.PublicURL = "https://x/?a=b" }, "https://x"},
		"tls":            {func(o *setup) { o.TLS.Mode = "on" }, "TLS"},
		"streams":        {func(o *setup) { o.MaxStreams = -1 }, "-1"},
		"rate":           {func(o *setup) { o.RatePerMinute = 5000 }, "5000"},
		"account":        {func(o *setup) { o.MaxAccountStreams = -2 }, "-2"},
		"latency":        {func(o *setup) { o.Engine.Latency = time.Hour }, "latency"},
		"folder in use":  {func(o *setup) { o.DataDir = data }, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			o := setup{Options: Options{Addr: "127.0.0.1:0", APIKeys: []string{testKey}}}
			c.change(&o)
			s, err := Start(context.Background(), o.Options)
			if err == nil {
				_ = s.Shutdown(context.Background())
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
				hint.Of(err) == "" {
				t.Errorf("%v (%T)", err, err)
			}
		})
	}
}

func TestURLNamesAHostThatCanBeReached(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:0": "https://127.0.0.1:", "localhost:0": "https://", "0.0.0.0:0": "https://127.0.0.1:", ":0": "https://127.0.0.1:",
	} {
		h := serve(t, func(o *setup) { o.Addr = addr })
		if !strings.HasPrefix(h.URL(), want) {
			t.Errorf("%s: %s", addr, h.URL())
		}
		h.do("GET", "/v1/test", testKey, nil).hasStatus(t, addr, http.StatusOK)
	}
}

// Transfers that stand still are cut off when the time is over; that is no
// error of the server.
func TestShutdownCutsOffTransfers(t *testing.T) {
	t.Parallel()
	h := serve(t)
	h.put("media://large", strings.Repeat("x", 24<<20))
	stalled := rawRequest(t, h, "GET", h.ask("output", "media://large"), 0)
	var head [len("HTTP/1.1 200")]byte
	if _, err := io.ReadFull(stalled, head[:]); err != nil || string(head[:]) != "HTTP/1.1 200" {
		t.Fatalf("%q %v", head, err)
	}
	rawRequest(t, h, "PUT", h.ask("input", "media://half"), 1000)
	testkit.Eventually(t, "two transfers", func() bool { return h.transfers.Count() == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := h.Server.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := h.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
}

// rawRequest sends the head of a request that announces a body, and nothing
// after it.
func rawRequest(t *testing.T, h *host, method, address string, length int) net.Conn {
	t.Helper()
	u := testkit.Must(url.Parse(address))(t)
	conn := h.connect()
	testkit.Must(fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", method, u.Path, u.Host, length))(t)
	return conn
}
