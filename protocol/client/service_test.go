package client

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"
)

const testKey = "secret-key-8c1f"

// newTestClient is a client for a server started by serve.
func newTestClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.APIKey == "" {
		o.APIKey = testKey
	}
	c := testkit.Must(New(o))(t)
	c.wait = func(context.Context, time.Duration) error { t.Error("an unexpected wait"); return nil }
	t.Cleanup(c.Close)
	return c
}

// script is what a server does with one stream. When it returns, the
// connection is dropped without a close frame.
type script func(t *testing.T, conn *websocket.Conn)

// streamAt is the address of a stream of a server.
func streamAt(address string) string {
	return "ws" + strings.TrimPrefix(address, "http") + "/stream?token=tok-123"
}

// openStream runs a script on a real socket over TLS and opens a stream to it.
// Bounds of the stream are changed by change.
func openStream(t *testing.T, s script, change func(*config)) *Stream {
	t.Helper()
	address, ca := protocoltest.ServeTLS(t, protocoltest.Service{Stream: func(conn *websocket.Conn) { s(t, conn) }}.Handler(), nil)
	c := newTestClient(t, Options{BaseURL: address, CACert: ca})
	if change != nil {
		change(&c.config)
	}
	stream := testkit.Must(c.OpenStream(context.Background(), streamAt(address)))(t)
	t.Cleanup(stream.Close)
	return stream
}

// pipeStream is openStream without a socket, for a test in a synctest bubble.
func pipeStream(t *testing.T, s script, change func(*config)) *Stream {
	t.Helper()
	near, far := net.Pipe()
	return connStream(t, near, far, s, change)
}

// bufferedStream is pipeStream with what is read without a bound at the service, as with the buffers of sockets.
func bufferedStream(t *testing.T, s script) *Stream {
	t.Helper()
	near, far := net.Pipe()
	return connStream(t, near, newBufferedConn(far), s, nil)
}

// inBubble runs a test with a name in a synctest bubble.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// ended receives until a stream is over, and tells how it ended.
func ended(s *Stream) CloseInfo {
	for range s.Events() {
	}
	return s.Wait()
}

// connStream is pipeStream over another connection.
func connStream(t *testing.T, near, far net.Conn, s script, change func(*config)) *Stream {
	t.Helper()
	var server sync.WaitGroup
	server.Go(func() {
		defer far.Close()
		conn, err := protocoltest.Accept(far)
		if err != nil {
			t.Errorf("server: %v", err)
			return
		}
		s(t, conn)
	})
	conn := testkit.Must(protocoltest.Dial(near))(t)
	c := defaultConfig()
	if change != nil {
		change(&c)
	}
	stream := newStream(conn, c, trace.NewRedactor(testKey))
	stream.start()
	t.Cleanup(func() {
		stream.Close()
		server.Wait()
	})
	return stream
}

// say sends a text message as the server.
func say(t *testing.T, conn *websocket.Conn, text string) {
	if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Errorf("server: %v", err)
	}
}

// untilEnd reads up to end_of_stream and returns how many chunks came.
func untilEnd(t *testing.T, conn *websocket.Conn) (chunks int) {
	samples := make([]float32, protocol.ChunkSamples)
	for {
		kind, payload, err := conn.ReadMessage()
		if err != nil {
			t.Errorf("server: %v", err)
			return chunks
		}
		if kind == websocket.TextMessage {
			if err := protocol.ParseClientMessage(payload); err != nil {
				t.Errorf("server: %v", err)
			}
			return chunks
		}
		if err := protocol.DecodeChunk(samples, payload); err != nil {
			t.Errorf("server: %v", err)
		}
		chunks++
	}
}

// collect receives all events and tells how the stream ended.
func collect(t *testing.T, s *Stream) ([]protocol.Event, CloseInfo) {
	t.Helper()
	var events []protocol.Event
	limit := time.After(testkit.Timeout)
	for {
		select {
		case e, ok := <-s.Events():
			if !ok {
				return events, s.Wait()
			}
			events = append(events, e)
		case <-limit:
			t.Fatal("the stream did not end")
		}
	}
}

func mustSend(t *testing.T, s *Stream, seq int64) {
	t.Helper()
	testkit.NoError(t, s.Send(seq, make([]float32, protocol.ChunkSamples)))
}

// breakOff resets the TCP connection under a WebSocket.
func breakOff(t *testing.T, conn *websocket.Conn) {
	tcp := tcpOf(conn)
	if err := tcp.SetLinger(0); err != nil {
		t.Error(err)
	}
	_ = tcp.Close()
}

func tcpOf(conn *websocket.Conn) *net.TCPConn {
	return conn.NetConn().(*tls.Conn).NetConn().(*net.TCPConn)
}

// lossyService is a service whose streams end as a script says.
type lossyService struct {
	t       *testing.T
	creates []func(w http.ResponseWriter) bool // of the n-th request: true = handled
	streams []script                           // of the n-th stream
	resumes bool                               // whether it continues labels

	mu     sync.Mutex
	asked  []string // bodies of the requests
	begins any      // resumeAt of the newest request
	from   []string // their connections
	when   []time.Time
	opened int
	got    [][]int64   // chunks of each stream
	at     []time.Time // when those of the newest arrived
}

// create handles a request for a stream.
func (s *lossyService) create(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	n := len(s.asked)
	asked := fmt.Sprint(body["resume"])
	if body["voiceprints"] != nil {
		asked += " with voiceprints"
	}
	s.asked, s.begins = append(s.asked, asked), body["resumeAt"]
	s.from = append(s.from, r.RemoteAddr)
	s.when = append(s.when, time.Now())
	s.mu.Unlock()
	if n < len(s.creates) && s.creates[n] != nil && s.creates[n](w) {
		return
	}
	_ = json.NewEncoder(w).Encode(protocol.LiveStream{ID: fmt.Sprint("id", n), URL: protocoltest.StreamURL(r), Resumed: s.resumes && body["resume"] != nil})
}

// stream plays the script of the next stream.
func (s *lossyService) stream(conn *websocket.Conn) {
	s.mu.Lock()
	n := s.opened
	s.opened++
	s.got, s.at = append(s.got, nil), nil
	s.mu.Unlock()
	if n < len(s.streams) {
		s.streams[n](s.t, conn)
	} else {
		s.t.Errorf("stream %d was not expected", n)
	}
}

// receives is a script that receives n chunks (n < 0: up to end_of_stream) and then
// goes on.
func (s *lossyService) receives(stream, n int, then script) script {
	return func(t *testing.T, conn *websocket.Conn) {
		for n < 0 || s.count(stream) < n {
			kind, payload, err := conn.ReadMessage()
			if err != nil {
				t.Errorf("server, stream %d: %v", stream, err)
				return
			}
			if kind == websocket.TextMessage {
				break
			}
			seq := int64(math.Float32frombits(binary.LittleEndian.Uint32(payload)))
			s.mu.Lock()
			s.got[stream], s.at = append(s.got[stream], seq), append(s.at, time.Now())
			s.mu.Unlock()
		}
		then(t, conn)
	}
}

func (s *lossyService) count(stream int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stream >= len(s.got) {
		return 0
	}
	return len(s.got[stream])
}

func (s *lossyService) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// sending sends events, then goes on.
func sending(then script, events ...string) script {
	return func(t *testing.T, conn *websocket.Conn) {
		for _, text := range events {
			var word, label string
			var at float64
			_, _ = fmt.Sscan(text, &word, &at, &label)
			say(t, conn, string(protocol.NewSpeakerEvent("diarization_speaker_"+word, at, label).Raw))
		}
		then(t, conn)
	}
}

// cutConnection ends the connection without a close. What was said before arrives,
// which a reset might prevent.
func cutConnection(_ *testing.T, conn *websocket.Conn) {
	_ = tcpOf(conn).CloseWrite()
	protocoltest.Drain(conn)
}

func closeNormally(t *testing.T, conn *websocket.Conn) {
	protocoltest.CloseWith(conn, websocket.CloseNormalClosure, "")
}

// open opens a resilient stream of the service.
func (s *lossyService) open(o ResilientOptions, change func(*config)) *ResilientStream {
	s.t.Helper()
	address, ca := protocoltest.ServeTLS(s.t, protocoltest.Service{Create: s.create, Stream: s.stream}.Handler(), nil)
	c := newTestClient(s.t, Options{BaseURL: address, CACert: ca, Timeout: 2 * attemptTimeout})
	c.config.backOff = func(tries int, err error) time.Duration { return min(backOff(tries, err), 50*time.Millisecond) }
	if change != nil {
		change(&c.config)
	}
	l := testkit.Must(c.OpenResilient(context.Background(), o))(s.t)
	s.t.Cleanup(l.Close)
	return l
}

// backOffOf is a wait before each attempt, or the longer one that the service asks for.
func backOffOf(wait time.Duration) func(int, error) time.Duration {
	return func(_ int, err error) time.Duration {
		if response, ok := errors.AsType[*ResponseError](err); ok {
			return max(wait, response.RetryAfter)
		}
		return wait
	}
}

// marked is a chunk that says which one it is.
func marked(seq int64) []float32 {
	x := make([]float32, protocol.ChunkSamples)
	x[0] = float32(seq)
	return x
}

func sendChunks(t *testing.T, l *ResilientStream, from, to int64) {
	t.Helper()
	for seq := from; seq < to; seq++ {
		testkit.NoError(t, l.Send(seq, marked(seq)))
	}
}

// receiveAll receives until the stream is over.
func receiveAll(t *testing.T, l *ResilientStream) (lines []string, changes []ConnectionChange, end CloseInfo) {
	t.Helper()
	limit := time.After(testkit.Timeout)
	for {
		select {
		case u, ok := <-l.Updates():
			if !ok {
				return lines, changes, l.Wait()
			}
			if u.Change != nil {
				changes = append(changes, *u.Change)
			} else {
				lines = append(lines, fmt.Sprintf("%s %g %s", strings.TrimPrefix(u.Event.Type, "diarization_speaker_"), u.Event.Timestamp, u.Event.Speaker))
			}
		case <-limit:
			t.Fatal("the stream did not end")
		}
	}
}

// Test is an operation as any other.
func (c *Client) Test(ctx context.Context) (out protocol.TestResponse, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/test", &out)
	return out, err
}
