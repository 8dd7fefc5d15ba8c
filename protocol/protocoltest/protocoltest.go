// Package protocoltest is a fake diarization service for tests: HTTP operations
// and streams on real sockets, each replaceable, so that a test can make any of
// them fail.
package protocoltest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// What the service returns unless a test replaces it.
const (
	ID    = "x"                         // of every stream
	Token = "token-that-nobody-may-see" // of every stream
)

// Service is a service with one account and streams of one turn. A nil field is
// the correct behaviour.
type Service struct {
	Test, Create, Status, Handshake, Watch http.HandlerFunc
	// Stream is called with each stream that was opened. When it returns, the
	// connection ends without a close frame.
	Stream func(*websocket.Conn)
}

// Handler serves the service at the address that a request names.
func (s Service) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, replaced, correct http.HandlerFunc) {
		if replaced == nil {
			replaced = correct
		}
		mux.HandleFunc(pattern, replaced)
	}
	handle("GET /v1/test", s.Test, Respond(http.StatusOK, `{"status":"OK","message":"fine"}`))
	handle("POST /v1/live", s.Create, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":%q,"url":%q}`, ID, StreamURL(r))
	})
	handle("GET /v1/live/{id}", s.Status, Respond(http.StatusOK, `{"id":"`+ID+`","status":"done"}`))
	handle("GET /v1/live/{id}/events", s.Watch, http.NotFound)
	handle("GET /stream", s.Handshake, func(w http.ResponseWriter, r *http.Request) {
		if conn := Upgrade(w, r); conn != nil {
			defer conn.Close()
			if s.Stream != nil {
				s.Stream(conn)
			} else {
				OneTurn(conn)
			}
		}
	})
	return mux
}

// StreamURL is the address of a stream of the service that received r.
func StreamURL(r *http.Request) string {
	scheme := "ws"
	if r.TLS != nil {
		scheme = "wss"
	}
	return scheme + "://" + r.Host + "/stream?token=" + Token
}

// Upgrade accepts a WebSocket whose reads have a deadline; nil if r is none.
func Upgrade(w http.ResponseWriter, r *http.Request) *websocket.Conn {
	upgrader := websocket.Upgrader{}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil
	}
	_ = conn.SetReadDeadline(time.Now().Add(testkit.Timeout))
	return conn
}

// Accept upgrades the server's end of a connection that no web server accepted,
// such as one of net.Pipe, to a WebSocket.
func Accept(conn net.Conn) (*websocket.Conn, error) {
	in := bufio.NewReader(conn)
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil, err
	}
	return (&websocket.Upgrader{}).Upgrade(&hijacker{conn: conn, in: in}, r, nil)
}

// hijacker is a http.ResponseWriter that hands over its connection.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
	in   *bufio.Reader
}

func (h *hijacker) Header() http.Header { return http.Header{} }

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(h.in, bufio.NewWriter(h.conn)), nil
}

// Dial opens a WebSocket on a connection whose other end is given to Accept.
func Dial(conn net.Conn) (*websocket.Conn, error) {
	dialer := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	ws, _, err := dialer.Dial("ws://server/", nil)
	return ws, err
}

// Respond responds to every request with a status and a body. headers are names and
// values by turns.
func Respond(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// OneTurn is a correct stream: a turn begins with the first chunk and ends with
// the audio.
func OneTurn(conn *websocket.Conn) {
	_, _, _ = conn.ReadMessage()
	Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerStart, 0.05, "SPEAKER_00"))
	UntilEnd(conn)
	Send(conn, protocol.NewSpeakerEvent(protocol.TypeSpeakerEnd, 0.1, "SPEAKER_00"))
	CloseWith(conn, websocket.CloseNormalClosure, "")
}

// Send sends an event.
func Send(conn *websocket.Conn, e protocol.Event) {
	_ = conn.WriteMessage(websocket.TextMessage, e.Raw)
}

// Brief is a list of events in one line, such as "+00@20ms -00@1.5s".
func Brief(events []protocol.Event) string {
	var out []string
	for _, e := range events {
		switch {
		case e.Err != "" && strings.HasPrefix(e.Err, "binary"):
			out = append(out, "binary")
		case e.Err != "":
			out = append(out, "unreadable")
		case e.Type == protocol.TypeSpeakerStart, e.Type == protocol.TypeSpeakerEnd:
			mark := map[string]string{protocol.TypeSpeakerStart: "+", protocol.TypeSpeakerEnd: "-"}[e.Type]
			out = append(out, mark+strings.TrimPrefix(e.Speaker, "SPEAKER_")+"@"+time.Duration(e.Timestamp*float64(time.Second)).Round(time.Millisecond).String())
		case e.Type == protocol.TypeError:
			out = append(out, e.Message)
		default:
			out = append(out, e.Type)
		}
	}
	return strings.Join(out, " ")
}

// UntilEnd reads up to end_of_stream and returns the chunks.
func UntilEnd(conn *websocket.Conn) (chunks [][]byte) {
	for {
		kind, payload, err := conn.ReadMessage()
		if err != nil || kind == websocket.TextMessage {
			return chunks
		}
		chunks = append(chunks, payload)
	}
}

// CloseWith sends a close frame and waits for the client's.
func CloseWith(conn *websocket.Conn, code int, text string) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(testkit.Timeout))
	Drain(conn)
}

// Drain reads until the connection ends.
func Drain(conn *websocket.Conn) {
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

// Serve starts a server without TLS and returns its address.
func Serve(t testing.TB, h http.Handler) (address string) {
	t.Helper()
	s := httptest.NewServer(untilEnded(t, h))
	t.Cleanup(s.Close)
	return s.URL
}

// untilEnded is h, whose calls a test waits for at its end: a server that is closed does
// not wait for those with a stream, and they may still tell the test what is wrong.
func untilEnded(t testing.TB, h http.Handler) http.Handler {
	var running atomic.Int32
	t.Cleanup(func() {
		testkit.Eventually(t, "the end of the service's handlers", func() bool { return running.Load() == 0 })
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		h.ServeHTTP(w, r)
	})
}

// ServeTLS starts a server with a new certificate, as change wants it, and
// returns its address and the certificate in PEM format.
func ServeTLS(t testing.TB, h http.Handler, change func(*x509.Certificate)) (address string, ca []byte) {
	t.Helper()
	cert, ca := Certificate(t, change)
	s := httptest.NewUnstartedServer(untilEnded(t, h))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, ca
}

// Certificate makes a self-signed certificate for 127.0.0.1, as change wants it.
func Certificate(t testing.TB, change func(*x509.Certificate)) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Authority"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	testkit.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Listen starts a TCP server that is no web server and returns its address. Each
// connection is closed when serve returns, and at the end of the test.
func Listen(t testing.TB, serve func(net.Conn)) (address string) {
	t.Helper()
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		cancel()
		running.Wait()
	})
	return l.Addr().String()
}
