package localserver

import (
	"encoding/binary"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol"
)

// wire puts a session on one end of a pipe, as if a client had opened it; what
// the client writes is raw, so that frames can be as wrong as can be.
func wire(t testing.TB, h *host, d Diarizer) (client net.Conn, closed chan struct{}) {
	t.Helper()
	client, server := net.Pipe()
	ready := make(chan struct{})
	closed = make(chan struct{})
	go func() {
		defer close(closed)
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			close(ready)
			h.newSession("00000000-0000-4000-8000-000000000000", conn, d, "").run(h.life, h.streams.drain)
		})
		l := &oneConn{conn: server, closed: make(chan struct{})}
		s := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
		s.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateHijacked || state == http.StateClosed {
				_ = l.Close()
			}
		}
		done := make(chan struct{})
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(done)
			handler(w, r)
		})
		_ = s.Serve(l)
		<-done
	}()
	request := "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	if _, err := io.WriteString(client, request); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, client) }()
	<-ready
	return client, closed
}

// oneConn is a listener for one connection.
type oneConn struct {
	conn   net.Conn
	given  atomic.Bool
	once   atomic.Bool
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.given.Swap(true) {
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	if !l.once.Swap(true) {
		close(l.closed)
	}
	return nil
}
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// frame builds a masked frame of a client by hand.
func frame(first byte, body []byte) []byte {
	out := []byte{first}
	switch n := len(body); {
	case n < 126:
		out = append(out, 0x80|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, 0x80|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 0x80|127), uint64(n))
	}
	return append(append(out, 0, 0, 0, 0), body...) // a mask of zeros
}

// Whatever bytes arrive on a stream's connection: it ends, what the engine
// hears is finite and whole, and nothing of it stays behind.
func FuzzStreamBytes(f *testing.F) {
	nan := make([]byte, protocol.ChunkBytes)
	binary.LittleEndian.PutUint32(nan, math.Float32bits(float32(math.NaN())))
	f.Add([]byte{})
	f.Add(frame(0x82, quiet))
	f.Add(frame(0x82, nan))
	f.Add(frame(0x82, quiet[:6399]))
	f.Add(append(frame(0x02, quiet[:3200]), frame(0x80, quiet[3200:])...))
	f.Add(frame(0x81, []byte(protocol.EndOfStreamMessage)))
	f.Add(append(frame(0x82, quiet), frame(0x81, []byte(protocol.EndOfStreamMessage))...))
	f.Add(frame(0x81, []byte(`{"type":"hello"}`)))
	f.Add(frame(0x81, []byte{0xff, 0xfe}))
	f.Add(frame(0x88, []byte{3, 232}))
	f.Add(frame(0x88, []byte{1}))
	f.Add(frame(0x89, []byte("ping")))
	f.Add(frame(0xc2, quiet))                                                    // a reserved bit
	f.Add([]byte{0x82, 0x05, 1, 2, 3, 4, 5})                                     // not masked
	f.Add([]byte{0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}) // as long as can be
	f.Add([]byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}) // longer
	h := serve(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		client, closed := wire(t, h, &fake{push: func(n int, samples []float32) []engine.Event {
			if len(samples) != protocol.ChunkSamples {
				t.Errorf("%d samples", len(samples))
			}
			for _, x := range samples {
				if x-x != 0 {
					t.Error("the engine hears", x)
				}
			}
			return []engine.Event{{Kind: engine.Kind(n%2 + 1), At: time.Duration(n) * 90 * time.Millisecond}}
		}})
		_, _ = client.Write(raw)
		_ = client.Close()
		select {
		case <-closed:
		case <-time.After(patience):
			t.Fatal("the session does not end")
		}
	})
}

// Whatever is sent to an address, the answer is an HTTP answer in JSON.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{"/", "/v1/test", "/v1/live", "/v1/live/x", "/v1/stream/x?token=y", "//", "/%00", "*", "/v1/../v1/test"} {
		for _, method := range []string{"GET", "POST", "HEAD", "OPTIONS", "CONNECT", "X"} {
			f.Add(method, path, "Bearer "+testKey, `{"a":1}`)
		}
	}
	f.Add("POST", "/v1/live", "Bearer "+testKey, "\x00[")
	f.Add("POST", "/v1/live", "Bearer", "{")
	h := serve(f)
	routes := h.routes()
	f.Fuzz(func(t *testing.T, method, path, key, body string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method, r.URL.Path = method, path
		r.Header.Set("Authorization", key)
		r.Body = io.NopCloser(&limited{text: body})
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		if path == "/metrics" && w.Code == 200 {
			return // the one answer that is text
		}
		if w.Code < 200 || w.Code == 500 || w.Header().Get("Content-Type") != "application/json" || len(w.Header().Get("X-Request-Id")) != 36 {
			t.Errorf("%q %q: %d %v", method, path, w.Code, w.Header())
		}
	})
}

// limited is a body that comes in small pieces.
type limited struct{ text string }

func (l *limited) Read(p []byte) (int, error) {
	if l.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 7)], l.text)
	l.text = l.text[n:]
	return n, nil
}
