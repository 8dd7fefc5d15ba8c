package localserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/protocol"
)

func TestShutdownFinishesOpenStreams(t *testing.T) {
	h := serve(t)
	waiting := h.create()
	s := h.open()
	s.chunks(3)
	if e := s.next(); e.Type != protocol.TypeSpeakerStart {
		t.Fatalf("got %s", e.Raw)
	}
	eventually(t, "chunks", func() bool { return h.Stats().Chunks == 3 })

	// As long as a stream is finishing, nothing new is let in, and it is said why.
	gate := make(chan struct{})
	held := h.open2(t, gate)
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		down <- h.Shutdown(ctx)
	}()
	events, code, _ := s.rest()
	if code != websocket.CloseGoingAway || len(events) != 1 || string(events[0].Raw) != fmt.Sprintf(endOf, "0.3") {
		t.Errorf("code %d %q", code, raws(events))
	}
	// Its audio was cut off by the server: not what its client calls done.
	if st := h.status(s.id); st.Status != "error" || st.CompletedAt == nil {
		t.Errorf("%+v", st)
	}
	h.do("POST", "/v1/live", testKey, nil).apiError(t, 503)
	h.do("GET", "/readyz", "", nil).apiError(t, 503)
	h.refused(waiting.URL, 503)
	if res := h.do("GET", "/healthz", "", nil); res.StatusCode != 200 {
		t.Errorf("healthz: %d", res.StatusCode)
	}
	close(gate)
	if _, code, _ := held.rest(); code != websocket.CloseGoingAway {
		t.Errorf("the held one: %d", code)
	}
	h.http.CloseIdleConnections()
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := h.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
	if conn, err := net.DialTimeout("tcp", h.Addr().String(), patience); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}

// open2 opens a stream whose engine finishes when gate is closed.
func (h *host) open2(t *testing.T, gate chan struct{}) *stream {
	t.Helper()
	before := h.Server.options.NewDiarizer
	defer func() { h.Server.options.NewDiarizer = before }()
	h.Server.options.NewDiarizer = func() (Diarizer, error) {
		return &fake{flush: func(int) []engine.Event { <-gate; return nil }}, nil
	}
	return h.open()
}

// A stream whose client has said end_of_stream is done, also while the server stops.
func TestShutdownAfterTheEndOfAStream(t *testing.T) {
	gate := make(chan struct{})
	h := serve(t)
	s := h.open2(t, gate)
	s.chunks(1)
	s.end()
	s.text("ignored") // its answer tells that the end was read
	if e := s.next(); e.Message != textIsOver {
		t.Fatalf("got %s", e.Raw)
	}
	go func() { _ = h.Shutdown(context.Background()) }()
	eventually(t, "stopping", h.streams.stopping)
	close(gate)
	if _, code, _ := s.rest(); code != websocket.CloseNormalClosure {
		t.Errorf("code %d", code)
	}
}

// When the time is over, what is still open is cut off.
func TestShutdownCutsOffWhatDoesNotEnd(t *testing.T) {
	gate := make(chan struct{})
	h := serve(t)
	s := h.open2(t, gate)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	time.AfterFunc(100*time.Millisecond, func() { close(gate) })
	if err := h.Server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}
	if _, _, err := s.ReadMessage(); err == nil {
		t.Error("the stream is still open")
	}
	if err := h.Wait(); err != nil {
		t.Errorf("wait: %v", err)
	}
}

func TestListenerThatBreaksEndsTheServer(t *testing.T) {
	h := serve(t)
	s := h.open()
	_ = h.listener.Close()
	if _, code, _ := s.rest(); code != websocket.CloseGoingAway {
		t.Errorf("code %d", code)
	}
	if err := h.Wait(); err == nil || !strings.Contains(err.Error(), "no more connections") {
		t.Errorf("wait: %v", err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	data := t.TempDir()
	serve(t, func(o *Options) { o.DataDir = data })
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"port in use":    {func(o *Options) { o.Addr = taken.Addr().String() }, "in use"},
		"no port":        {func(o *Options) { o.Addr = "localhost" }, "HOST:PORT"},
		"wrong port":     {func(o *Options) { o.Addr = "127.0.0.1:99999" }, "99999"},
		"unknown host":   {func(o *Options) { o.Addr = "no-such-host.invalid:0" }, "no-such-host.invalid"},
		"not ours":       {func(o *Options) { o.Addr = "192.0.2.1:0" }, "192.0.2.1"},
		"no key":         {func(o *Options) { o.APIKeys = nil }, "API key"},
		"empty key":      {func(o *Options) { o.APIKeys = []string{"a", ""} }, "API key"},
		"key with space": {func(o *Options) { o.APIKeys = []string{"a b"} }, "API key"},
		"public address": {func(o *Options) { o.PublicURL = "talk.example.org" }, "talk.example.org"},
		"public query":   {func(o *Options) { o.PublicURL = "https://x/?a=b" }, "https://x"},
		"tls":            {func(o *Options) { o.TLS.Mode = "on" }, "TLS"},
		"streams":        {func(o *Options) { o.MaxStreams = -1 }, "-1"},
		"rate":           {func(o *Options) { o.RatePerMinute = 5000 }, "5000"},
		"account":        {func(o *Options) { o.MaxAccountStreams = -2 }, "-2"},
		"latency":        {func(o *Options) { o.Engine.Latency = time.Hour }, "latency"},
		"folder in use":  {func(o *Options) { o.DataDir = data }, "in use"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Addr: "127.0.0.1:0", APIKeys: []string{testKey}}
			c.change(&o)
			s, err := Start(context.Background(), o)
			if err == nil {
				_ = s.Shutdown(context.Background())
				t.Fatal("it started")
			}
			var h interface{ Hint() string }
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
				!errors.As(err, &h) || h.Hint() == "" {
				t.Errorf("%v (%T)", err, err)
			}
		})
	}
}

func TestURLNamesAHostThatCanBeReached(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:0": "https://127.0.0.1:", "localhost:0": "https://", "0.0.0.0:0": "https://127.0.0.1:", ":0": "https://127.0.0.1:",
	} {
		h := serve(t, func(o *Options) { o.Addr = addr })
		if !strings.HasPrefix(h.URL(), want) {
			t.Errorf("%s: %s", addr, h.URL())
		}
		if res := h.do("GET", "/v1/test", testKey, nil); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", addr, res.StatusCode)
		}
	}
}
