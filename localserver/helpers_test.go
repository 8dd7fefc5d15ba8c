package localserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/stream"
	"hubbub/localserver/stream/streamtest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

const testKey = "key-for-tests"

// withEngine makes every stream use a diarizer of make.
func withEngine[D stream.Diarizer](make func() D) func(*setup) {
	return func(o *setup) { o.NewDiarizer = func() (stream.Diarizer, error) { return make(), nil } }
}

// host is a running server and its clients.
type host struct {
	*Server
	t    testing.TB
	url  string
	http *http.Client
	dial websocket.Dialer
}

// setup is how a test starts its server.
type setup struct {
	Options
	now func() time.Time
}

// serve starts a server on a port of its own, and stops it after the test.
func serve(t testing.TB, change ...func(*setup)) *host {
	t.Helper()
	o := setup{Options{Addr: "127.0.0.1:0", APIKeys: []string{testKey},
		RatePerMinute: -1}, // tests ask often; those of the limit set their own
		time.Now}
	withEngine(streamtest.OneTurn)(&o)
	for _, c := range change {
		c(&o)
	}
	s := testkit.Must(start(context.Background(), o.Options, o.now))(t)
	h := clientOf(t, s.URL(), s.CAPEM())
	h.Server = s
	t.Cleanup(func() {
		h.http.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return h
}

// clientOf returns the clients of a server, in this process or another one.
func clientOf(t testing.TB, url string, ca []byte) *host {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: pool}
	transport := &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &host{t: t, url: url,
		http: &http.Client{Transport: transport, Timeout: testkit.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		dial: websocket.Dialer{TLSClientConfig: config, HandshakeTimeout: testkit.Timeout},
	}
}

// reply is a response with its body.
type reply struct {
	*http.Response
	body []byte
}

func (h *host) do(method, path, key string, body io.Reader) reply {
	h.t.Helper()
	r := testkit.Must(http.NewRequest(method, h.url+path, body))(h.t)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return h.send(r)
}

func (h *host) send(r *http.Request) reply {
	h.t.Helper()
	res := testkit.Must(h.http.Do(r))(h.t)
	return read(h.t, res)
}

func read(t testing.TB, res *http.Response) reply {
	t.Helper()
	raw, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	testkit.NoError(t, err)
	return reply{res, raw}
}

// hasStatus checks the status of a response.
func (r reply) hasStatus(t testing.TB, what string, status int) {
	t.Helper()
	if r.StatusCode != status {
		t.Errorf("%.60s: %d %s, want %d", what, r.StatusCode, r.body, status)
	}
}

// invalid checks that a response is 400 because of one field.
func (r reply) invalid(t testing.TB, what, field string) {
	t.Helper()
	var bad protocol.ValidationErrorResponse
	if err := json.Unmarshal(r.body, &bad); err != nil || r.StatusCode != http.StatusBadRequest || len(bad.Errors) != 1 || bad.Errors[0].Field != field {
		t.Errorf("%.80s: %d %s, want 400 with the field %s", what, r.StatusCode, r.body, field)
	}
}

// apiError checks that a response is a complete ApiError with a status.
func (r reply) apiError(t testing.TB, status int) protocol.APIError {
	t.Helper()
	var e protocol.APIError
	dec := json.NewDecoder(bytes.NewReader(r.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		t.Fatalf("%d %q: %v", r.StatusCode, r.body, err)
	}
	if r.StatusCode != status || e.Message == "" || len(e.RequestID) != 36 ||
		e.RequestID != r.Header.Get("X-Request-Id") ||
		r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("want ApiError %d, got %d %v %s", status, r.StatusCode, r.Header, r.body)
	}
	if status == http.StatusUnauthorized && r.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Fatalf("401 without WWW-Authenticate: %v", r.Header)
	}
	return e
}

// decoded is the body of a response, which must have a status.
func decoded[T any](t testing.TB, r reply, status int) (body T) {
	t.Helper()
	if err := json.Unmarshal(r.body, &body); err != nil || r.StatusCode != status {
		t.Fatalf("%d %s, want %d: %v", r.StatusCode, r.body, status, err)
	}
	return body
}

// create creates a stream.
func (h *host) create() protocol.LiveStream { h.t.Helper(); return h.createWith("{}") }

// createWith creates a stream with a body.
func (h *host) createWith(body string) protocol.LiveStream {
	h.t.Helper()
	res := h.do("POST", "/v1/live", testKey, strings.NewReader(body))
	l := decoded[protocol.LiveStream](h.t, res, 200)
	if l.ID == "" || l.URL == "" || res.Header.Get("Cache-Control") != "no-store" { // it contains a token
		h.t.Fatalf("create: %+v %v", l, res.Header)
	}
	return l
}

// status returns the status of a stream.
func (h *host) status(id string) protocol.LiveStatus {
	h.t.Helper()
	return decoded[protocol.LiveStatus](h.t, h.do("GET", "/v1/live/"+id, testKey, nil), 200)
}

// becomes waits until a stream has a status.
func (h *host) becomes(id, status string) {
	h.t.Helper()
	testkit.Eventually(h.t, "status "+status, func() bool { return h.status(id).Status == status })
}

// testStream is the client's end of an open stream.
type testStream struct {
	*clientConn
	t  testing.TB
	id string
}

func (h *host) open() *testStream {
	h.t.Helper()
	return h.openNow(h.create())
}

// openNow opens a stream at the first attempt.
func (h *host) openNow(l protocol.LiveStream) *testStream {
	h.t.Helper()
	conn, res, err := h.dial.Dial(l.URL, nil)
	if err != nil {
		h.t.Fatalf("dial: %v %v", err, res)
	}
	return &testStream{newClientConn(h.t, conn), h.t, l.ID}
}

var quiet = make([]byte, protocol.ChunkBytes)

func (s *testStream) chunks(n int) {
	s.t.Helper()
	for range n {
		testkit.NoError(s.t, s.WriteMessage(websocket.BinaryMessage, quiet))
	}
}

func (s *testStream) text(m string) {
	s.t.Helper()
	testkit.NoError(s.t, s.WriteMessage(websocket.TextMessage, []byte(m)))
}

func (s *testStream) end() { s.t.Helper(); s.text(protocol.EndOfStreamMessage) }

// next returns the next message.
func (s *testStream) next() protocol.Event {
	s.t.Helper()
	kind, raw, err := s.ReadMessage()
	if err != nil {
		s.t.Fatalf("no message: %v", err)
	}
	e, err := protocol.ParseEvent(raw)
	if err != nil || kind != websocket.TextMessage {
		s.t.Fatalf("message %q of kind %d: %v", raw, kind, err)
	}
	return e
}

// toTheEnd returns all messages, valid or not, and how the connection ended.
func (s *testStream) toTheEnd() (events []protocol.Event, end error) {
	for {
		kind, raw, err := s.ReadMessage()
		if err != nil {
			return events, err
		}
		e, _ := protocol.ParseEvent(raw)
		if kind == websocket.BinaryMessage {
			e.Err = "binary"
		}
		events = append(events, e)
	}
}

// rest reads to the end: the messages, which must be valid, and the code and text of the close frame.
func (s *testStream) rest() (events []protocol.Event, code int, text string) {
	s.t.Helper()
	events, err := s.toTheEnd()
	end, ok := errors.AsType[*websocket.CloseError](err)
	if !ok || slices.ContainsFunc(events, func(e protocol.Event) bool { return e.Err != "" }) {
		s.t.Fatalf("%q, and then %v", raws(events), err)
	}
	return events, end.Code, end.Text
}

// closes reads to the end, which must be a close frame with a code, and returns the messages.
func (s *testStream) closes(code int) []protocol.Event {
	s.t.Helper()
	events, got, text := s.rest()
	if got != code {
		s.t.Errorf("closed with %d %q, want %d", got, text, code)
	}
	return events
}

// sendAudio sends samples in chunks, and their end.
func (s *testStream) sendAudio(samples []float32) {
	for x := range slices.Chunk(samples, protocol.ChunkSamples) {
		if s.WriteMessage(websocket.BinaryMessage, protocol.AppendChunk(nil, x)) != nil {
			return
		}
	}
	_ = s.WriteMessage(websocket.TextMessage, []byte(protocol.EndOfStreamMessage))
}

// stored are the events in the store.
func (h *host) stored(id string) (events []string) {
	h.t.Helper()
	raw := testkit.Must(h.store.Messages(context.Background(), id))(h.t)
	for _, m := range raw {
		events = append(events, string(m))
	}
	return events
}

func raws(events []protocol.Event) (out []string) {
	for _, e := range events {
		out = append(out, string(e.Raw))
	}
	return out
}

// clock is a wall clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *clock) use(o *setup) { o.now = c.now }

// logBuffer records the log.
type logBuffer struct{ testkit.Buffer }

func (l *logBuffer) use(o *setup) {
	o.Logger = l.Logger()
}

// count is how often a text was logged.
func (l *logBuffer) count(text string) int { return strings.Count(l.String(), text) }

// openAt opens a stream on this node. A handshake that fails with 503 is made
// again with the same token, which is not used up.
func (h *host) openAt(l protocol.LiveStream) *testStream {
	h.t.Helper()
	var conn *websocket.Conn
	testkit.Eventually(h.t, "an open stream", func() bool {
		var res *http.Response
		var err error
		conn, res, err = h.dial.Dial(h.here(l.URL), nil)
		if err != nil && (res == nil || res.StatusCode != http.StatusServiceUnavailable) {
			h.t.Fatalf("dial: %v %v", err, res)
		}
		return err == nil
	})
	return &testStream{newClientConn(h.t, conn), h.t, l.ID}
}

// here is the address of a stream on this node.
func (h *host) here(address string) string {
	_, host, _ := strings.Cut(h.url, "://")
	scheme, rest, _ := strings.Cut(address, "://")
	_, path, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + "/" + path
}

// retried is a response as soon as it is not 503.
func (h *host) retried(method, path, body string) (res reply) {
	h.t.Helper()
	testkit.Eventually(h.t, method+" "+path, func() bool {
		res = h.do(method, path, testKey, strings.NewReader(body))
		if res.StatusCode == http.StatusServiceUnavailable {
			res.apiError(h.t, http.StatusServiceUnavailable)
			return false
		}
		return true
	})
	return res
}

// retriedCreate creates a stream as soon as the store accepts one.
func (h *host) retriedCreate() protocol.LiveStream {
	h.t.Helper()
	return decoded[protocol.LiveStream](h.t, h.retried("POST", "/v1/live", ""), 200)
}
