package check

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
)

const testKey = "key-that-nobody-may-see"

func TestMain(m *testing.M) { testkit.NoProxy(); testkit.Parallel(8); os.Exit(testkit.Run(m)) }

// serve starts a service without TLS.
func serve(t *testing.T, s protocoltest.Service) (address string) {
	t.Helper()
	return protocoltest.Serve(t, s.Handler())
}

// run runs one check of an address with so many chunks of audio; limit is for
// each step.
func run(t *testing.T, address, key string, limit time.Duration, chunks int, change func(*client.Options)) Report {
	t.Helper()
	o := client.Options{BaseURL: address, APIKey: key, Timeout: limit}
	if change != nil {
		change(&o)
	}
	c := testkit.Must(client.New(o))(t)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*testkit.Timeout)
	defer cancel()
	return Run(ctx, Options{Client: c, Server: address, Key: key, Limit: limit, Speech: make([]float32, chunks*protocol.ChunkSamples)})
}

// runCheck is run, and fails if a secret is in the report.
func runCheck(t *testing.T, address, key string, limit time.Duration, chunks int, change func(*client.Options)) Report {
	t.Helper()
	r := run(t, address, key, limit, chunks, change)
	var all bytes.Buffer
	testkit.NoError(t, r.Ticket(&all))
	for _, secret := range []string{key, protocoltest.Token} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("the report contains %q:\n%s", secret, all.String())
		}
	}
	if t.Failed() {
		t.Log(all.String())
	}
	return r
}

// fails demands that a stage failed, all before it did not, none after it was
// tried, and that cause and next step say what they should.
func fails(t *testing.T, r Report, stage, cause, next string) {
	t.Helper()
	if r.OK {
		t.Error("the check says that all is well")
	}
	after := false
	for _, s := range r.Stages {
		switch {
		case s.Name == stage:
			after = true
			if s.State != Failed || !strings.Contains(s.Cause, cause) || !strings.Contains(s.Next, next) {
				t.Errorf("%s: %s\ncause %q, want %q\nnext  %q, want %q", stage, s.State, s.Cause, cause, s.Next, next)
			}
		case stage == "close" && s.Name == "lag":
		case after && s.State != Skipped:
			t.Errorf("%s was %s after %s had failed", s.Name, s.State, stage)
		case !after && (s.State == Failed || s.State == Skipped):
			t.Errorf("%s was %s before %s: %s", s.Name, s.State, stage, s.Cause)
		}
	}
}

// notices demands that a stage worked with a notice.
func notices(t *testing.T, r Report, stage, cause, next string) {
	t.Helper()
	i := slices.IndexFunc(r.Stages, func(s Stage) bool { return s.Name == stage })
	if s := r.Stages[i]; s.State != Notice || !strings.Contains(s.Cause, cause) || !strings.Contains(s.Next, next) {
		t.Errorf("%+v, want %q, %q", s, cause, next)
	}
}

func jwtUntil(end time.Time) string {
	payload := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"sub":"a","exp":%d}`, end.Unix()))
	return "eyJhbGciOiJIUzI1NiJ9." + payload + ".c2lnbmF0dXJl"
}

// Each way to fail is named at its stage, with its cause and what to do.
func TestCheckNamesTheCause(t *testing.T) {
	refused := func(status int, headers ...string) http.HandlerFunc {
		return protocoltest.Respond(status, `{"requestId":"r1","message":"no: `+testKey+`"}`, headers...)
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	old := time.Now().Add(-10 * time.Minute).UTC().Format(http.TimeFormat)
	expired := jwtUntil(time.Now().Add(-time.Hour))
	for _, tt := range []struct {
		name               string
		service            protocoltest.Service
		key                string
		limit              time.Duration
		stage, cause, next string
	}{
		{name: "wrong key", service: protocoltest.Service{Test: refused(401)}, stage: "key", cause: "401", next: "API key"},
		{name: "expired key", service: protocoltest.Service{Test: refused(401)}, key: expired, stage: "key", cause: "the key expired on ", next: "new API key"},
		{name: "clock", service: protocoltest.Service{Test: refused(401, "Date", old)}, stage: "key", cause: "ahead of the service's", next: "clock"},
		{name: "forbidden", service: protocoltest.Service{Test: refused(403)}, stage: "key", cause: "403", next: "does not permit"},
		{name: "wrong address", service: protocoltest.Service{Test: protocoltest.Respond(404, "nothing here")}, stage: "key", cause: "404", next: "--server"},
		{name: "too many requests", service: protocoltest.Service{Test: refused(429, "Retry-After", "7")}, stage: "key", cause: "429", next: "wait 7s"},
		{name: "portal page", service: protocoltest.Service{Test: protocoltest.Respond(200, "<html><title>Hotel</title>", "Content-Type", "text/html")},
			stage: "key", cause: "web page", next: "captive portal"},
		{name: "portal redirection", service: protocoltest.Service{Test: protocoltest.Respond(302, "", "Location", "http://login.invalid/?from=x")},
			stage: "key", cause: "login.invalid", next: "captive portal"},
		{name: "portal 511", service: protocoltest.Service{Test: protocoltest.Respond(511, "")}, stage: "key", cause: "511", next: "captive portal"},
		{name: "other JSON", service: protocoltest.Service{Test: protocoltest.Respond(200, `{"hello":1}`)}, stage: "key", cause: "no status", next: "--server"},
		{name: "no response", service: protocoltest.Service{Test: hang}, limit: time.Second, stage: "key", cause: "no response", next: "nothing responds"},
		{name: "no subscription", service: protocoltest.Service{Create: refused(402)}, stage: "create", cause: "402", next: "subscription"},
		{name: "too many streams", service: protocoltest.Service{Create: refused(429, "Retry-After", "30")}, stage: "create", cause: "429", next: "wait 30s"},
		{name: "broken", service: protocoltest.Service{Create: refused(500)}, stage: "create", cause: "500", next: "request id"},
		{name: "token used", service: protocoltest.Service{Handshake: refused(401)}, stage: "websocket", cause: "401", next: "used up"},
		{name: "upgrade eaten", service: protocoltest.Service{Handshake: protocoltest.Respond(400, "Bad Request")}, stage: "websocket", cause: "400", next: "Upgrade"},
		{name: "upgrade ignored", service: protocoltest.Service{Handshake: protocoltest.Respond(200, "hello")}, stage: "websocket", cause: "not a WebSocket", next: "Upgrade"},
		{name: "handshake hangs", service: protocoltest.Service{Handshake: hang}, limit: time.Second, stage: "websocket", cause: "no response", next: "WebSocket"},
		{name: "cut off", stage: "audio", cause: "without a close", next: "load balancer", service: protocoltest.Service{Stream: func(c *websocket.Conn) { _, _, _ = c.ReadMessage() }}},
		{name: "reset", stage: "audio", cause: "the connection ", next: "network", service: protocoltest.Service{Stream: func(c *websocket.Conn) {
			_, _, _ = c.ReadMessage()
			_ = c.NetConn().(*net.TCPConn).SetLinger(0)
		}}},
		{name: "broken off", stage: "audio", cause: "1011", next: "operator of the service", service: protocoltest.Service{Stream: func(c *websocket.Conn) {
			_, _, _ = c.ReadMessage()
			protocoltest.CloseWith(c, 1011, "out of memory")
		}}},
		{name: "ahead", stage: "audio", cause: "1008", next: "rule", service: protocoltest.Service{Stream: func(c *websocket.Conn) {
			protocoltest.Send(c, protocol.NewErrorEvent("Audio is ahead"))
			protocoltest.CloseWith(c, 1008, "too fast")
		}}},
		{name: "chunk size", stage: "audio", cause: "Invalid chunk size", next: "6400", service: protocoltest.Service{Stream: func(c *websocket.Conn) {
			protocoltest.Send(c, protocol.NewErrorEvent("Invalid chunk size"))
			protocoltest.UntilEnd(c)
			protocoltest.CloseWith(c, 1000, "")
		}}},
		{name: "unreadable", stage: "audio", cause: "cannot be read: binary message of 3 bytes", next: "conform", service: protocoltest.Service{Stream: func(c *websocket.Conn) {
			_ = c.WriteMessage(websocket.BinaryMessage, []byte{1, 2, 3})
			protocoltest.UntilEnd(c)
			protocoltest.CloseWith(c, 1000, "")
		}}},
		{name: "unreachable stream", stage: "websocket", cause: "127.0.0.1:1 refuses", next: "--public-url", service: protocoltest.Service{
			Create: protocoltest.Respond(200, `{"id":"7","url":"ws://127.0.0.1:1/s?token=`+protocoltest.Token+`"}`)}},
		{name: "going away", stage: "close", cause: "1001", next: "again", service: protocoltest.Service{Stream: func(c *websocket.Conn) {
			_, _, _ = c.ReadMessage()
			protocoltest.Send(c, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
			protocoltest.UntilEnd(c)
			protocoltest.CloseWith(c, 1001, "")
		}}},
		{name: "no close", stage: "close", cause: "without a close", next: "network", service: protocoltest.Service{Stream: func(c *websocket.Conn) { protocoltest.UntilEnd(c) }}},
		{name: "never closes", limit: time.Second, stage: "close", cause: "did not close", next: "--timeout", service: protocoltest.Service{Stream: func(c *websocket.Conn) {
			_, _, _ = c.ReadMessage()
			protocoltest.Send(c, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
			protocoltest.UntilEnd(c)
			_, _, _ = c.ReadMessage()
		}}},
		{name: "no status", service: protocoltest.Service{Status: refused(404)}, stage: "status", cause: "404", next: "Another server responds at this address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key, limit := cmp.Or(tt.key, testKey), tt.limit
			if limit == 0 {
				limit = testkit.Timeout
			}
			chunks := 8
			if tt.stage == "audio" {
				chunks = 15 // the service's word must come while they are sent
			}
			r := runCheck(t, serve(t, tt.service), key, limit, chunks, nil)
			fails(t, r, tt.stage, tt.cause, tt.next)
			if s := r.First(Failed); s != nil && strings.Contains(s.Cause, "the service returned ") && !strings.Contains(s.Cause, fmt.Sprintf("the service returned %v", s.Details["status"])) {
				t.Errorf("%q: %v", s.Cause, s.Details)
			}
		})
	}
}

// Speech without an event is a failure only when there was enough of it.
func TestCheckWithoutEvents(t *testing.T) {
	t.Parallel()
	silent := protocoltest.Service{Stream: func(c *websocket.Conn) { protocoltest.UntilEnd(c); protocoltest.CloseWith(c, 1000, "") }}
	r := runCheck(t, serve(t, silent), testKey, testkit.Timeout, 2, nil)
	notices(t, r, "event", "", "--seconds")
	if s := r.First(Failed); s != nil {
		t.Errorf("%+v", s)
	}
	other := protocoltest.Service{Stream: func(c *websocket.Conn) {
		_ = c.WriteMessage(websocket.TextMessage, []byte(`{"type":"speaker_start","at":1}`))
		silent.Stream(c)
	}}
	for cause, c := range map[string]struct {
		service protocoltest.Service
		next    string
	}{"no event": {silent, "Silence or noise"}, `unknown types: ["speaker_start"]`: {other, "conform"}} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			fails(t, runCheck(t, serve(t, c.service), testKey, testkit.Timeout, enoughSpeech*10, nil), "event", cause, c.next)
		})
	}
}

// Pings tell a service that is slow or hangs from one that only does not end streams.
func TestCheckPings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer      func(ping int32, pong func()) // pings are counted from 1
		chunks      int
		cause, next string // cause is a regular expression
	}{
		"none": {func(int32, func()) {}, 25, "^the service answers no ping$", ""},
		"first": {func(ping int32, pong func()) {
			if ping == 1 {
				pong()
			}
		}, enoughSpeech * 10, "^the service answered no ping behind the last 5.0 s of audio$", "network hangs"},
		"late": {func(_ int32, pong func()) { time.AfterFunc(trace.MaxPong+time.Millisecond, pong) }, enoughSpeech * 10, "the answer to a ping took", "buffers messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pings atomic.Int32
			r := runCheck(t, serve(t, protocoltest.Service{Stream: func(conn *websocket.Conn) {
				conn.SetPingHandler(func(data string) error {
					c.answer(pings.Add(1), func() {
						_ = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(testkit.Timeout))
					})
					return nil
				})
				protocoltest.UntilEnd(conn)
				_, _, _ = conn.ReadMessage()
			}}), testKey, time.Second, c.chunks, nil)
			if name == "none" {
				fails(t, r, "close", "did not close the stream within 1s after end_of_stream, and answered no ping behind the last 2.5 s", "operator")
			}
			notices(t, r, "audio", "", c.next)
			if s := r.Stages[6]; !regexp.MustCompile(c.cause).MatchString(s.Cause) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// What is lost, and what is silent, have other causes.
func TestEndErrors(t *testing.T) {
	t.Parallel()
	for reason, next := range map[client.Reason]string{client.Lost: "ends connections", client.TimedOut: "smaller MTU", client.GoingAway: "in a moment"} {
		if err := endError(client.CloseInfo{Reason: reason, Err: io.EOF}); !errors.Is(err, io.EOF) || !strings.Contains(hint.Of(err), next) {
			t.Errorf("%v: %v; %s", reason, err, hint.Of(err))
		}
	}
}

// A clock that is wrong is worth a notice where nothing has failed yet.
func TestCheckNotices(t *testing.T) {
	t.Parallel()
	skewed := protocoltest.Service{
		Test:   protocoltest.Respond(200, `{"status":"OK","message":"fine"}`, "Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)),
		Status: protocoltest.Respond(200, `{"id":"x","status":"error"}`),
	}
	r := runCheck(t, serve(t, skewed), testKey, testkit.Timeout, 2, nil)
	if !r.OK {
		t.Errorf("%+v", r)
	}
	notices(t, r, "tls", "sent unencrypted", "https://")
	notices(t, r, "key", "behind the service's", "clock")
	notices(t, r, "status", `expected "done"`, "")
}

// Events that are no turns are known before a session shows them, one of the future is
// none that is in time, and late ones are late.
func TestCheckWrongEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event       protocol.Event
		after       time.Duration
		stage       string
		cause, next string
	}{
		{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 3600, "SPEAKER_00"), 0, "lag", "s later than all audio", "conform"},
		{protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.05, "SPEAKER_00"), 0, "event", "impossible time: 1", "conform"},
		{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"), 0, "event", "end did not arrive: 1", "conform"},
		{protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"), trace.MaxLag + time.Second, "lag", "events arrive late", trace.CauseLate},
	} {
		r := runCheck(t, serve(t, protocoltest.Service{Stream: func(conn *websocket.Conn) {
			_, _, _ = conn.ReadMessage()
			time.Sleep(c.after)
			protocoltest.Send(conn, c.event)
			protocoltest.UntilEnd(conn)
			protocoltest.CloseWith(conn, 1000, "")
		}}), testKey, testkit.Timeout, 2, nil)
		notices(t, r, c.stage, c.cause, c.next)
		testkit.Equal(t, r.OK, true, c.event)
	}
}

// The certificate is seen also when it is not taken.
func TestCheckTLS(t *testing.T) {
	t.Parallel()
	address, ca := protocoltest.ServeTLS(t, protocoltest.Service{}.Handler(), nil) // its certificate ends soon
	r := runCheck(t, address, testKey, testkit.Timeout, 2, nil)
	fails(t, r, "tls", "authority that this machine does not know: Test Authority", "--ca FILE")
	if d := r.Stages[2].Details; d["name_matches"] != true || d["verified"] != false || d["version"] != "TLS 1.3" {
		t.Errorf("%+v", d)
	}
	r = runCheck(t, address, testKey, testkit.Timeout, 2, func(o *client.Options) { o.Insecure = true })
	testkit.Equal(t, r.OK, true, r)
	notices(t, r, "tls", "--insecure", "--ca")
	plain := serve(t, protocoltest.Service{})
	fails(t, runCheck(t, strings.Replace(plain, "http:", "https:", 1), testKey, testkit.Timeout, 2, nil), "tls", "responds without TLS", "http://")
	fails(t, runCheck(t, strings.Replace(address, "https:", "http:", 1), testKey, testkit.Timeout, 2, nil), "key", "400", "https://")
	r = runCheck(t, address, testKey, testkit.Timeout, 2, func(o *client.Options) { o.CACert = ca })
	notices(t, r, "tls", "expires in 1 days", "renew it")
	if d := r.Stages[2].Details; !r.OK || d["days_left"] != 1 {
		t.Errorf("%+v", d)
	}
}

// What is no service at all: nobody listens, nobody speaks, the connection breaks.
func TestCheckWithoutAService(t *testing.T) {
	t.Parallel()
	mute := protocoltest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	fails(t, runCheck(t, "https://"+mute, testKey, time.Second, 2, nil), "tls", "no response", "firewall")
	fails(t, runCheck(t, "http://"+mute, testKey, time.Second, 2, nil), "key", "no response", "nothing responds")
	ssh := protocoltest.Listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n"); _, _ = c.Read(make([]byte, 512)) })
	fails(t, runCheck(t, "https://"+ssh, testKey, testkit.Timeout, 2, nil), "tls", "does not speak TLS", "port")
	fails(t, runCheck(t, "http://127.0.0.1:1", testKey, testkit.Timeout, 2, nil), "tcp", "refuses", "Nothing listens")
	fails(t, runCheck(t, "http://nosuch.invalid", testKey, 2*time.Second, 2, nil), "dns", "nosuch.invalid", "")
}

// An interrupted check is no failed one, and ends at once.
func TestCheckInterrupted(t *testing.T) {
	t.Parallel()
	c := testkit.Must(client.New(client.Options{BaseURL: serve(t, protocoltest.Service{}), APIKey: testKey}))(t)
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := Run(ctx, Options{Client: c, Key: testKey, Limit: testkit.Timeout, Speech: make([]float32, 600*protocol.ChunkSamples),
		Begin: func(title string) {
			if title == "audio accepted" {
				time.AfterFunc(200*time.Millisecond, cancel)
			}
		}})
	for i, s := range r.Stages {
		if want := i >= 6; (s.State == Skipped) != want || s.State == Failed {
			t.Errorf("%+v", s)
		}
	}
	if r.OK {
		t.Error("an interrupted check is not well")
	}
}

// The JSON has the same fields for every stage, whatever became of it.
func TestCheckJSON(t *testing.T) {
	t.Parallel()
	r := runCheck(t, "http://127.0.0.1:1", testKey, testkit.Timeout, 1, nil)
	var b bytes.Buffer
	testkit.NoError(t, r.JSON(&b))
	var got struct{ Stages []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got.Stages) != len(stages) {
		t.Fatalf("%v: %s", err, b.String())
	}
	for i, s := range got.Stages {
		if s["name"] != stages[i].name {
			t.Errorf("stage %d is %v", i, s["name"])
		}
		for _, field := range []string{"title", "state", "ms", "seen", "cause", "next"} {
			if _, ok := s[field]; !ok {
				t.Errorf("%v has no %s", s["name"], field)
			}
		}
	}
}

// Certificates that are out of date or of another name, of an authority that is trusted.
func TestCheckCertificates(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change      func(*x509.Certificate)
		cause, next string
	}{
		"expired":          {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }, "expired on", "renew"},
		"clock":            {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }, "not valid before", "clock"},
		"common name only": {func(c *x509.Certificate) { c.IPAddresses = nil }, "issued for no name", "subject alternative name"},
		"interception": {func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"login.hotel.example"} },
			"issued for login.hotel.example, by Test Authority", "intercepts TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			address, ca := protocoltest.ServeTLS(t, protocoltest.Service{}.Handler(), tt.change)
			fails(t, runCheck(t, address, testKey, testkit.Timeout, 2, func(o *client.Options) { o.CACert = ca }), "tls", tt.cause, tt.next)
		})
	}
}
