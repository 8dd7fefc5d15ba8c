package localserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/engine"
	"hubbub/localserver/faults"
	"hubbub/localserver/stream"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol/errno"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// withFaults configures faults.
func withFaults(t *testing.T, specs ...string) func(*setup) {
	t.Helper()
	return func(o *setup) {
		for _, spec := range specs {
			f := testkit.Must(faults.Parse(spec))(t)
			o.Faults = append(o.Faults, f)
		}
		withEngine(twoTurns)(o)
	}
}

// twoTurns has a turn of speaker 0 and one of speaker 1 in the first eight
// chunks.
func twoTurns() stream.Diarizer {
	says := map[int]engine.Event{
		2: {Kind: engine.Start, At: 100 * time.Millisecond}, 4: {Kind: engine.End, At: 300 * time.Millisecond},
		5: {Kind: engine.Start, At: 400 * time.Millisecond, Speaker: 1}, 8: {Kind: engine.End, At: 700 * time.Millisecond, Speaker: 1},
	}
	return &streamtest.Diarizer{OnPush: func(n int, _ []float32) []engine.Event {
		if e, ok := says[n]; ok {
			return []engine.Event{e}
		}
		return nil
	}}
}

// What a client receives with some faults of events (package faults tests the others).
// The stored events are correct, and the close frame waits for the delayed ones for longer than
// the server waits without the fault.
func TestFaultsOfEvents(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"chunk-size=5":                  "",
		"event-lag=2500ms no-starts":    "-00@300ms -01@700ms",
		"slow-read=20ms":                "+00@100ms -00@300ms +01@400ms -01@700ms",
		"drop-events=1,times=1 mute@1h": "",
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			h := serve(t, withFaults(t, strings.Fields(spec)...))
			s := h.open()
			s.chunks(10)
			s.end()
			events, end := s.toTheEnd()
			got := protocoltest.Brief(events)
			switch {
			case spec == "chunk-size=5": // the reader says it at once, the events take their way
				if strings.Count(got, "Invalid chunk size") != 2 || strings.Count(got, "@") != 4 {
					t.Errorf("got %s", got)
				}
			case got != want:
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if !websocket.IsCloseError(end, websocket.CloseNormalClosure) {
				t.Errorf("ended with %v", end)
			}
			h.becomes(s.id, "done")
			if stored := h.stored(s.id); len(stored) != 4 {
				t.Errorf("stored: %q", stored)
			}
		})
	}
}

// A reset reaches the client, and the record says that its stream was lost. Package faults tests
// the other ends.
func TestReset(t *testing.T) {
	t.Parallel()
	h := serve(t, withFaults(t, "reset@200ms"))
	s := h.open()
	if _, end := s.toTheEnd(); !errno.Is(end, syscall.ECONNRESET) {
		t.Errorf("ended with %v", end)
	}
	h.becomes(s.id, "error")
}

// A stream that is not closed stays open until its client closes it.
func TestNeverClose(t *testing.T) {
	t.Parallel()
	h := serve(t, withFaults(t, "never-close"))
	s := h.open()
	s.chunks(10)
	s.end()
	for range 4 {
		s.next()
	}
	h.becomes(s.id, "done")
	if _, _, err := s.readWithin(3 * time.Second); !isTimeout(err) {
		t.Errorf("it did not stay open: %v", err)
	}
	_ = s.Close()
	testkit.Eventually(t, "the end of the stream", func() bool { return h.streams.Count() == 0 })
}

// A muted server sends nothing, not even pongs.
func TestMute(t *testing.T) {
	t.Parallel()
	for spec, pongs := range map[string]bool{"mute": false, "no-pong": false, "slow-read=1ms": true} {
		h := serve(t, withFaults(t, spec))
		s := h.open()
		_ = s.WriteControl(websocket.PingMessage, []byte("?"), time.Now().Add(testkit.Timeout))
		s.chunks(2) // after the ping: once there is an event, the ping was seen
		wait := testkit.Timeout
		if spec == "mute" {
			wait = time.Second
		}
		_, _, err := s.readWithin(wait)
		if isTimeout(err) != (spec == "mute") || spec != "mute" && err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		testkit.Equal(t, s.pongs.Load() == 1, pongs, spec, "pong")
		_ = s.Close()
	}
}

// Faults affect every route of an operation, in order, as often as configured, and look like
// the server's own refusals. Package faults tests what each of them does.
func TestFaultsOfRequests(t *testing.T) {
	t.Parallel()
	h := serve(t, withFaults(t, "429=7s,times=1", "web-page,on=test,times=1", "400,on=media-input,times=1", "418,on=all"))
	res := h.do("POST", "/v1/live", testKey, nil)
	res.apiError(t, 429)
	if res.Header.Get("Retry-After") != "7" || res.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("%v", res.Header)
	}
	if res := h.do("GET", "/v1/test", testKey, nil); !strings.Contains(string(res.body), "Log in") || res.StatusCode != 200 {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	h.do("POST", "/v1/media/input", testKey, nil).invalid(t, "media-input", "body")
	for pattern := range h.patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		res := h.do(method, strings.NewReplacer("{id}", "x", "{sealed}", "x").Replace(path), testKey, nil)
		testkit.Equal(t, res.StatusCode == http.StatusTeapot, strings.HasPrefix(path, "/v"), pattern, "returned", res.StatusCode)
	}
}

// Handshakes: refused, slow, or without a response, which ends with the client or
// the server.
func TestFaultsOfHandshakes(t *testing.T) {
	t.Parallel()
	once := serve(t, withFaults(t, "403,on=handshake,times=1"))
	l := once.create()
	once.refused(l.URL, 403)
	_ = once.openNow(l).Close() // the token was not used up

	slow := serve(t, withFaults(t, "slow=300ms,on=handshake"))
	began := time.Now()
	s := slow.open()
	s.chunks(10)
	s.end()
	if events, _ := s.toTheEnd(); len(events) != 4 || time.Since(began) < 300*time.Millisecond {
		t.Errorf("%d events after %v", len(events), time.Since(began))
	}

	var log logBuffer
	never := serve(t, withFaults(t, "no-answer,on=handshake"), log.use)
	never.dial.HandshakeTimeout = 500 * time.Millisecond
	if _, res, err := never.dial.Dial(never.create().URL, nil); res != nil || !isTimeout(err) {
		t.Errorf("%v %v", res, err)
	}
	testkit.Eventually(t, "its line in the log", func() bool { return log.count("status=0") == 1 })
	testkit.Equal(t, never.metric(`hubbub_requests_total{code="0",method="GET",route="GET /v1/stream/{id}"}`), 1, "requests without a response")
}

// A server that delays a response can still be stopped, and logs at its start
// that it misbehaves.
func TestServerWithFaultsStops(t *testing.T) {
	t.Parallel()
	var log logBuffer
	h := serve(t, withFaults(t, "no-answer,on=test", "never-close"), log.use)
	if !strings.Contains(log.String(), "misbehaves on purpose") || !strings.Contains(log.String(), "fault=never-close") {
		t.Errorf("the log does not say so: %s", log.String())
	}
	asked := make(chan error, 1)
	go func() {
		r, _ := http.NewRequest("GET", h.url+"/v1/test", nil)
		res, err := h.http.Do(r)
		if err == nil {
			_ = res.Body.Close()
		}
		asked <- err
	}()
	s := h.open()
	s.chunks(1)
	s.end()
	h.becomes(s.id, "done")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	select {
	case err := <-asked:
		if err == nil {
			t.Error("there was a response")
		}
	case <-time.After(testkit.Timeout):
		t.Error("the request is still delayed")
	}
}
