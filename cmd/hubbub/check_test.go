package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

const (
	checkKey   = "key-that-nobody-may-see"
	checkToken = "token-that-nobody-may-see"
)

// badService is a service that can be made to fail at every step; a nil step
// does what it should.
type badService struct {
	test, create, handshake, status http.HandlerFunc
	stream                          func(*websocket.Conn)
}

// handler answers as the service does; url is where it is reached.
func (b badService) handler(url func() string) http.Handler {
	or := func(h http.HandlerFunc, otherwise http.HandlerFunc) http.HandlerFunc {
		if h != nil {
			return h
		}
		return otherwise
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/test", or(b.test, answer(200, `{"status":"OK","message":"fine"}`)))
	mux.HandleFunc("POST /v1/live", or(b.create, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"id":"x","url":"ws%s/stream?token=%s"}`, strings.TrimPrefix(url(), "http"), checkToken)
	}))
	mux.HandleFunc("GET /v1/live/x", or(b.status, answer(200, `{"id":"x","status":"done"}`)))
	mux.HandleFunc("GET /stream", or(b.handshake, func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		if b.stream != nil {
			b.stream(conn)
			return
		}
		goodStream(conn)
	}))
	return mux
}

// answer says the same whatever it is asked.
func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func goodStream(conn *websocket.Conn) {
	_, _, _ = conn.ReadMessage()
	say(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
	untilEnd(conn)
	say(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.1, "SPEAKER_00"))
	closeWith(conn, 1000, "")
}

func say(conn *websocket.Conn, e protocol.Event) {
	_ = conn.WriteMessage(websocket.TextMessage, e.Raw)
}

// untilEnd takes audio up to end_of_stream.
func untilEnd(conn *websocket.Conn) {
	for {
		if kind, _, err := conn.ReadMessage(); err != nil || kind == websocket.TextMessage {
			return
		}
	}
}

func closeWith(conn *websocket.Conn, code int, text string) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(patience))
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

// serveBad starts it without TLS.
func serveBad(t *testing.T, b badService) string {
	t.Helper()
	var s *httptest.Server
	s = httptest.NewUnstartedServer(b.handler(func() string { return s.URL }))
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// runCheck is one check of an address; the limit is for each step.
func runCheck(t *testing.T, address, key string, limit time.Duration, chunks int, change func(*protocol.ClientOptions)) checkReport {
	t.Helper()
	o := protocol.ClientOptions{BaseURL: address, APIKey: key, Timeout: limit}
	if change != nil {
		change(&o)
	}
	client, err := protocol.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := newChecker(&connection{Client: client, name: address}, limit, key, make([]float32, chunks*protocol.ChunkSamples))
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	c.run(ctx)
	r := c.report(time.Now())
	var all bytes.Buffer
	if err := r.ticket(&all); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{key, checkToken} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("the report holds %q:\n%s", secret, all.String())
		}
	}
	if t.Failed() {
		t.Log(all.String())
	}
	return r
}

// fails demands that a stage failed, all before it did not, none after it was
// tried, and that cause and next step say what they should.
func fails(t *testing.T, r checkReport, stage, cause, next string) {
	t.Helper()
	if r.OK {
		t.Error("the check says that all is well")
	}
	after := false
	for _, s := range r.Stages {
		switch {
		case s.Name == stage:
			after = true
			if s.State != stateFailed || !strings.Contains(s.Cause, cause) || !strings.Contains(s.Next, next) {
				t.Errorf("%s: %s\ncause %q, want %q\nnext  %q, want %q", stage, s.State, s.Cause, cause, s.Next, next)
			}
		case stage == "close" && s.Name == "lag":
		case after && s.State != stateSkipped:
			t.Errorf("%s was %s after %s had failed", s.Name, s.State, stage)
		case !after && (s.State == stateFailed || s.State == stateSkipped):
			t.Errorf("%s was %s before %s: %s", s.Name, s.State, stage, s.Cause)
		}
	}
}

func jwtUntil(end time.Time) string {
	payload := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"sub":"a","exp":%d}`, end.Unix()))
	return "eyJhbGciOiJIUzI1NiJ9." + payload + ".c2lnbmF0dXJl"
}

// Each way to fail is named at its stage, with its cause and what to do.
func TestCheckNamesTheCause(t *testing.T) {
	refused := func(status int, headers ...string) http.HandlerFunc {
		return answer(status, `{"requestId":"r1","message":"no: `+checkKey+`"}`, headers...)
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	old := time.Now().Add(-10 * time.Minute).UTC().Format(http.TimeFormat)
	expired := jwtUntil(time.Now().Add(-time.Hour))
	for _, tt := range []struct {
		name               string
		service            badService
		key                string
		limit              time.Duration
		stage, cause, next string
	}{
		{name: "wrong key", service: badService{test: refused(401)}, stage: "key", cause: "401", next: "API key"},
		{name: "expired key", service: badService{test: refused(401)}, key: expired, stage: "key", cause: "the key expired on ", next: "new API key"},
		{name: "clock", service: badService{test: refused(401, "Date", old)}, stage: "key", cause: "ahead of the service's", next: "clock"},
		{name: "forbidden", service: badService{test: refused(403)}, stage: "key", cause: "403", next: "may not"},
		{name: "wrong address", service: badService{test: answer(404, "nothing here")}, stage: "key", cause: "404", next: "--server"},
		{name: "too many requests", service: badService{test: refused(429, "Retry-After", "7")}, stage: "key", cause: "429", next: "wait 7s"},
		{name: "portal page", service: badService{test: answer(200, "<html><title>Hotel</title>", "Content-Type", "text/html")},
			stage: "key", cause: "web page", next: "captive portal"},
		{name: "portal redirection", service: badService{test: answer(302, "", "Location", "http://login.invalid/?from=x")},
			stage: "key", cause: "login.invalid", next: "captive portal"},
		{name: "portal 511", service: badService{test: answer(511, "")}, stage: "key", cause: "511", next: "captive portal"},
		{name: "other JSON", service: badService{test: answer(200, `{"hello":1}`)}, stage: "key", cause: "no status", next: "--server"},
		{name: "no answer", service: badService{test: hang}, limit: time.Second, stage: "key", cause: "no answer", next: "nothing answers"},
		{name: "no subscription", service: badService{create: refused(402)}, stage: "create", cause: "402", next: "subscription"},
		{name: "too many streams", service: badService{create: refused(429, "Retry-After", "30")}, stage: "create", cause: "429", next: "wait 30s"},
		{name: "broken", service: badService{create: refused(500)}, stage: "create", cause: "500", next: "request id"},
		{name: "token used", service: badService{handshake: refused(401)}, stage: "websocket", cause: "401", next: "used up"},
		{name: "upgrade eaten", service: badService{handshake: answer(400, "Bad Request")}, stage: "websocket", cause: "400", next: "Upgrade"},
		{name: "upgrade ignored", service: badService{handshake: answer(200, "hello")}, stage: "websocket", cause: "no WebSocket", next: "Upgrade"},
		{name: "handshake hangs", service: badService{handshake: hang}, limit: time.Second, stage: "websocket", cause: "no answer", next: "WebSockets"},
		{name: "broken off", stage: "audio", cause: "1011", next: "service", service: badService{stream: func(c *websocket.Conn) {
			_, _, _ = c.ReadMessage()
			closeWith(c, 1011, "out of memory")
		}}},
		{name: "ahead", stage: "audio", cause: "1008", next: "rule", service: badService{stream: func(c *websocket.Conn) {
			say(c, protocol.NewErrorEvent("Audio is ahead"))
			closeWith(c, 1008, "too fast")
		}}},
		{name: "chunk size", stage: "audio", cause: "Invalid chunk size", next: "6400", service: badService{stream: func(c *websocket.Conn) {
			say(c, protocol.NewErrorEvent("Invalid chunk size"))
			untilEnd(c)
			closeWith(c, 1000, "")
		}}},
		{name: "going away", stage: "close", cause: "1001", next: "again", service: badService{stream: func(c *websocket.Conn) {
			_, _, _ = c.ReadMessage()
			say(c, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
			untilEnd(c)
			closeWith(c, 1001, "")
		}}},
		{name: "never closes", limit: time.Second, stage: "close", cause: "did not close", next: "--timeout", service: badService{stream: func(c *websocket.Conn) {
			_, _, _ = c.ReadMessage()
			say(c, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
			untilEnd(c)
			_, _, _ = c.ReadMessage()
		}}},
		{name: "no status", service: badService{status: refused(404)}, stage: "status", cause: "404", next: "address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key, limit := orElse(tt.key, checkKey), tt.limit
			if limit == 0 {
				limit = patience
			}
			chunks := 8
			if tt.stage == "audio" {
				chunks = 15 // the service's word must come while they are sent
			}
			fails(t, runCheck(t, serveBad(t, tt.service), key, limit, chunks, nil), tt.stage, tt.cause, tt.next)
		})
	}
}

// Speech without an event is a failure only when there was enough of it.
func TestCheckWithoutEvents(t *testing.T) {
	t.Parallel()
	silent := badService{stream: func(c *websocket.Conn) { untilEnd(c); closeWith(c, 1000, "") }}
	r := runCheck(t, serveBad(t, silent), checkKey, patience, 2, nil)
	for _, s := range r.Stages {
		if s.Name == "event" && (s.State != stateNotice || !strings.Contains(s.Next, "--seconds")) || s.State == stateFailed {
			t.Errorf("%+v", s)
		}
	}
	fails(t, runCheck(t, serveBad(t, silent), checkKey, patience, speechEnough*10, nil), "event", "no event", "Silence or noise")
}

// A clock that is wrong is worth a notice where nothing has failed yet.
func TestCheckNotices(t *testing.T) {
	t.Parallel()
	skewed := badService{
		test:   answer(200, `{"status":"OK","message":"fine"}`, "Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)),
		status: answer(200, `{"id":"x","status":"error"}`),
	}
	r := runCheck(t, serveBad(t, skewed), checkKey, patience, 2, nil)
	if !r.OK {
		t.Errorf("%+v", r)
	}
	for _, i := range []int{2, 3, 10} { // http://, clock, status
		if s := r.Stages[i]; s.State != stateNotice || s.Cause == "" {
			t.Errorf("%+v", s)
		}
	}
	if cause := r.Stages[3].Cause; !strings.Contains(cause, "behind the service's") {
		t.Errorf("%q", cause)
	}
}

// The certificate is seen also when it is not taken.
func TestCheckTLS(t *testing.T) {
	t.Parallel()
	var s *httptest.Server
	s = httptest.NewUnstartedServer(badService{}.handler(func() string { return s.URL }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)

	r := runCheck(t, s.URL, checkKey, patience, 2, nil)
	fails(t, r, "tls", "authority that this machine does not know: Acme Co", "--ca FILE")
	if d := r.Stages[2].Details; d["name_matches"] != true || d["verified"] != false || d["version"] != "TLS 1.3" {
		t.Errorf("%+v", d)
	}
	r = runCheck(t, s.URL, checkKey, patience, 2, func(o *protocol.ClientOptions) { o.Insecure = true })
	if !r.OK || r.Stages[2].State != stateNotice || !strings.Contains(r.Stages[2].Cause, "--insecure") {
		t.Errorf("%+v", r)
	}
	plain := serveBad(t, badService{})
	fails(t, runCheck(t, strings.Replace(plain, "http:", "https:", 1), checkKey, patience, 2, nil), "tls", "answers without TLS", "http://")
	fails(t, runCheck(t, strings.Replace(s.URL, "https:", "http:", 1), checkKey, patience, 2, nil), "key", "400", "https://")
}

// What is no service at all: nobody listens, nobody speaks, the connection breaks.
func TestCheckWithoutAService(t *testing.T) {
	t.Parallel()
	listen := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var served sync.WaitGroup
		stop := make(chan struct{})
		served.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				served.Go(func() {
					defer conn.Close()
					if serve != nil {
						serve(conn)
						return
					}
					<-stop
				})
			}
		})
		t.Cleanup(func() { close(stop); l.Close(); served.Wait() })
		return l.Addr().String()
	}
	mute := listen(nil)
	fails(t, runCheck(t, "https://"+mute, checkKey, time.Second, 2, nil), "tls", "no answer", "firewall")
	fails(t, runCheck(t, "http://"+mute, checkKey, time.Second, 2, nil), "key", "no answer", "nothing answers")
	ssh := listen(func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n"); _, _ = c.Read(make([]byte, 512)) })
	fails(t, runCheck(t, "https://"+ssh, checkKey, patience, 2, nil), "tls", "does not speak TLS", "port")
	fails(t, runCheck(t, "http://127.0.0.1:1", checkKey, patience, 2, nil), "tcp", "refuses", "nothing listens")
	fails(t, runCheck(t, "http://nosuch.invalid", checkKey, 2*time.Second, 2, nil), "dns", "nosuch.invalid", "")
}

// An interrupted check is no failed one, and ends at once.
func TestCheckInterrupted(t *testing.T) {
	t.Parallel()
	client, err := protocol.NewClient(protocol.ClientOptions{BaseURL: serveBad(t, badService{}), APIKey: checkKey})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := newChecker(&connection{Client: client}, patience, checkKey, make([]float32, 600*protocol.ChunkSamples))
	c.begun = func(title string) {
		if title == "audio accepted" {
			time.AfterFunc(200*time.Millisecond, cancel)
		}
	}
	c.run(ctx)
	r := c.report(time.Now())
	for i, s := range r.Stages {
		if want := i >= 6; (s.State == stateSkipped) != want || s.State == stateFailed {
			t.Errorf("%+v", s)
		}
	}
	if r.OK {
		t.Error("an interrupted check is not well")
	}
}

// Ctrl-C ends the program with its code, and what was found so far is printed.
func TestCheckInterruptedProgram(t *testing.T) {
	t.Parallel()
	sending := make(chan struct{})
	address := serveBad(t, badService{stream: func(c *websocket.Conn) {
		_, _, _ = c.ReadMessage()
		close(sending)
		untilEnd(c)
	}})
	p := start(t, "check", "--server", address, "--api-key", checkKey, "--seconds", "60")
	select {
	case <-sending:
	case <-time.After(patience):
		t.Fatal("no audio came")
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.line("^ok +WebSocket opened")
	p.line("^skipped +audio accepted +interrupted$")
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
}

// The JSON has the same fields for every stage, whatever became of it.
func TestCheckJSON(t *testing.T) {
	t.Parallel()
	r := runCheck(t, "http://127.0.0.1:1", checkKey, patience, 1, nil)
	var b bytes.Buffer
	if err := r.print(&b, "json"); err != nil {
		t.Fatal(err)
	}
	var got struct{ Stages []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got.Stages) != len(stageTitles) {
		t.Fatalf("%v: %s", err, b.String())
	}
	for i, s := range got.Stages {
		if s["name"] != stageTitles[i][0] {
			t.Errorf("stage %d is %v", i, s["name"])
		}
		for _, field := range []string{"title", "state", "ms", "seen", "cause", "next"} {
			if _, ok := s[field]; !ok {
				t.Errorf("%v has no %s", s["name"], field)
			}
		}
	}
}
