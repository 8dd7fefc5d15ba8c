package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// plan is a plan of faults that are separated by spaces.
func plan(t *testing.T, specs string) (faults Plan) {
	t.Helper()
	for spec := range strings.FieldsSeq(specs) {
		f := testkit.Must(Parse(spec))(t)
		faults = append(faults, f)
	}
	return faults
}

// streamed runs serve on a stream with faults and returns the messages that the
// client receives, with their kinds, and how the connection ends. The test must
// run in a synctest bubble.
func streamed(t *testing.T, specs string, serve func(*Conn)) (messages []message, end error) {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ws, err := protocoltest.Accept(far)
		if err != nil {
			t.Error(err)
			return
		}
		c := plan(t, specs).Stream(ws)
		defer c.Close()
		serve(c)
	}()
	conn := testkit.Must(protocoltest.Dial(near))(t)
	for {
		kind, raw, err := conn.ReadMessage()
		if err != nil {
			_ = conn.Close()
			<-done
			return messages, err
		}
		messages = append(messages, message{kind, raw})
	}
}

// twoTurns sends two turns and a close frame.
func twoTurns(c *Conn) {
	for i, label := range []string{"A", "B"} {
		at := 0.5 + float64(i)
		_ = c.WriteMessage(websocket.TextMessage, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, at, label).Raw)
		_ = c.WriteMessage(websocket.TextMessage, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, at+0.25, label).Raw)
	}
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
}

// brief is a list of messages in one line.
func brief(messages []message) string {
	var events []protocol.Event
	for _, m := range messages {
		e, _ := protocol.ParseEvent(m.raw)
		if m.kind == websocket.BinaryMessage {
			e.Err = "binary"
		}
		events = append(events, e)
	}
	return protocoltest.Brief(events)
}

// What a client receives with the faults of events, and when the stream ends.
func TestEvents(t *testing.T) {
	const right = "+A@500ms -A@750ms +B@1.5s -B@1.75s"
	hostile := func(sign, label, at string) string {
		return fmt.Sprintf("%s\x1b[2J\x1b[31m%s\r\n\u202e\x07%s@%s", sign, label, strings.Repeat("W", 2000), at)
	}
	for specs, want := range map[string]string{
		"close=1000@1h":              right,
		"drop-events":                "+A@500ms +B@1.5s",
		"drop-events=3":              "+A@500ms -A@750ms -B@1.75s",
		"drop-events=1@1h":           right,
		"duplicate-events=2":         "+A@500ms -A@750ms -A@750ms +B@1.5s -B@1.75s -B@1.75s",
		"duplicate-events":           "+A@500ms +A@500ms -A@750ms -A@750ms +B@1.5s +B@1.5s -B@1.75s -B@1.75s",
		"no-starts":                  "-A@750ms -B@1.75s",
		"no-ends":                    "+A@500ms +B@1.5s",
		"end-before-start":           "+A@500ms -A@0s +B@1.5s -B@1s",
		"zero-length":                "+A@500ms -A@500ms +B@1.5s -B@1.5s",
		"future-events":              "+A@1h0m0.5s -A@1h0m0.75s +B@1h0m1.5s -B@1h0m1.75s",
		"out-of-order":               "-A@750ms +A@500ms -B@1.75s +B@1.5s",
		"out-of-order drop-events=3": "-A@750ms +A@500ms +B@1.5s",
		"unknown-speaker":            "+A@500ms -99@501ms -A@750ms +B@1.5s -99@1.501s -B@1.75s",
		"broken-json":                "+A@500ms unreadable -A@750ms unreadable +B@1.5s unreadable -B@1.75s unreadable",
		"unknown-type":               "diarization_fault +A@500ms diarization_fault -A@750ms diarization_fault +B@1.5s diarization_fault -B@1.75s",
		"extra-fields":               right,
		"hostile-labels":             hostile("+", "A", "500ms") + " " + hostile("-", "A", "750ms") + " " + hostile("+", "B", "1.5s") + " " + hostile("-", "B", "1.75s"),
		"binary-events":              "binary binary binary binary",
		"event-lag=3s":               right,
		"mute":                       "",
		"no-close":                   right,
	} {
		t.Run(specs, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				messages, end := streamed(t, specs, twoTurns)
				if got := brief(messages); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if specs == "extra-fields" && !bytes.Contains(messages[0].raw, []byte(`"fault"`)) {
					t.Errorf("got %s", messages[0].raw)
				}
				if closed := websocket.IsCloseError(end, websocket.CloseNormalClosure); closed == (specs == "mute" || specs == "no-close") {
					t.Errorf("ended with %v", end)
				}
				lag := map[string]time.Duration{"event-lag=3s": 3 * time.Second}[specs]
				testkit.Equal(t, time.Since(begun), lag, "ended after")
			})
		})
	}
}

// Faults that occur once end the stream at their time.
func TestOccurrences(t *testing.T) {
	for _, c := range []struct {
		spec  string
		after time.Duration
		code  int // 1006 = no close frame
		says  string
	}{
		{"close=1011@10s", 10 * time.Second, 1011, ""},
		{"close=4001", 0, 4001, ""},
		{"close=1005@3s", 3 * time.Second, websocket.CloseNoStatusReceived, ""},
		{"ahead@2s", 2 * time.Second, websocket.ClosePolicyViolation, "Audio is more than 5 s ahead of real time"},
		{"hang-up@1m", time.Minute, websocket.CloseAbnormalClosure, ""},
		{"reset@1s", time.Second, websocket.CloseAbnormalClosure, ""},
	} {
		t.Run(c.spec, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				messages, end := streamed(t, c.spec, func(conn *Conn) {
					for {
						if _, _, err := conn.NextReader(); err != nil {
							return
						}
					}
				})
				var closed *websocket.CloseError
				if took := time.Since(begun); !errors.As(end, &closed) || closed.Code != c.code || took != c.after || brief(messages) != c.says {
					t.Errorf("after %s: %q, %v", took, brief(messages), end)
				}
			})
		})
	}
}

// The reader of a stream may close it while the writer sends an event.
func TestClosedByItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		messages, end := streamed(t, "out-of-order", func(c *Conn) {
			var writer sync.WaitGroup
			writer.Go(func() {
				_ = c.WriteMessage(websocket.TextMessage, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 1, "A").Raw)
			})
			_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseMessageTooBig, ""), time.Now().Add(time.Second))
			writer.Wait()
		})
		if len(messages) > 1 || !websocket.IsCloseError(end, websocket.CloseMessageTooBig) {
			t.Errorf("%q, %v", brief(messages), end)
		}
	})
}

// A client that does not read ends a stream with faults, too.
func TestClientThatDoesNotRead(t *testing.T) {
	for _, specs := range []string{"close=1000@1h", "event-lag=1s"} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			accepted := make(chan *websocket.Conn, 1)
			go func() { accepted <- testkit.Must(protocoltest.Accept(far))(t) }()
			conn := testkit.Must(protocoltest.Dial(near))(t)
			defer conn.Close()
			began, c := time.Now(), plan(t, specs).Stream(<-accepted)
			defer c.Close()
			if err := c.WriteMessage(websocket.TextMessage, []byte("{}")); err == nil {
				<-c.ctx.Done()
			}
			testkit.Equal(t, time.Since(began), c.lag+writeTimeout, specs, "ends after")
		})
	}
}

// A plan counts the streams: the first two are affected, and no other.
func TestTimes(t *testing.T) {
	t.Parallel()
	p := plan(t, "drop-events,times=2")
	for i, want := range []int{1, 1, 0} {
		if got := len(p.next()); got != want {
			t.Errorf("stream %d has %d faults, not %d", i, got, want)
		}
	}
	if c := p.Stream(nil); c != nil {
		t.Error("a stream without faults is changed")
	}
}

// What a client gets with the faults of requests.
func TestRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec, route string
		status      int
		header      string // its value follows
		value       string
	}{
		{"503", "POST /v1/live", 503, "Retry-After", ""},
		{"503", "GET /v1/test", 200, "Retry-After", ""},
		{"503,on=all", "GET /v1/test", 503, "Retry-After", ""},
		{"503,on=all", "GET /healthz", 200, "Retry-After", ""},
		{"503,on=job-create", "POST /v1/diarize", 503, "Retry-After", ""},
		{"503,on=job-status", "GET /v1/jobs/{id}", 503, "Retry-After", ""},
		{"503,on=job-list", "GET /v2/jobs", 503, "Retry-After", ""},
		{"503,on=job-list", "POST /v1/diarize", 200, "Retry-After", ""},
		{"429=7s", "POST /v1/live", 429, "X-RateLimit-Reset", "7"},
		{"400", "POST /v1/live", 400, "Content-Type", "application/json"},
		{"web-page,on=test", "GET /v1/test", 200, "Content-Type", "text/html; charset=utf-8"},
		{"403,on=handshake", "GET /v1/stream/{id}", 403, "Retry-After", ""},
	} {
		h := plan(t, c.spec).Wrap(c.route, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			func(w http.ResponseWriter, _ *http.Request, status int, message string) {
				http.Error(w, message, status)
			}, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
		if w.Code != c.status || w.Header().Get(c.header) != c.value {
			t.Errorf("%s, %s: %d %v", c.spec, c.route, w.Code, w.Header())
		}
	}
}

// A delayed response ends with the request or with the server.
func TestDelays(t *testing.T) {
	aborted := func(h http.Handler, r *http.Request) (yes bool) {
		defer func() { yes = recover() == http.ErrAbortHandler }()
		h.ServeHTTP(httptest.NewRecorder(), r)
		return false
	}
	for _, c := range []struct {
		spec    string
		cancel  time.Duration // when the client goes
		stop    time.Duration // when the server stops
		after   time.Duration
		aborted bool
	}{
		{"slow=3s", time.Hour, time.Hour, 3 * time.Second, false},
		{"slow=3s", time.Second, time.Hour, time.Second, true},
		{"slow=3s", time.Hour, time.Second, time.Second, false},
		{"no-answer", time.Minute, time.Hour, time.Minute, true},
		{"no-answer", time.Hour, time.Second, time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), c.cancel)
			defer cancel()
			stopping := make(chan struct{})
			time.AfterFunc(c.stop, func() { close(stopping) })
			h := plan(t, c.spec).Wrap("POST /v1/live", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil, stopping)
			begun := time.Now()
			got := aborted(h, httptest.NewRequest(http.MethodPost, "/v1/live", nil).WithContext(ctx))
			if took := time.Since(begun); got != c.aborted || took != c.after {
				t.Errorf("%+v: aborted %v after %s", c, got, took)
			}
		})
	}
}
