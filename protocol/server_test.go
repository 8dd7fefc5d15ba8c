package protocol

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const testKey = "secret-key-8c1f"

// patience is how long a test waits for what must happen; a busy machine may
// need some of it, a passing test none.
const patience = 20 * time.Second

// certificate makes a self-signed one for 127.0.0.1, as change wants it.
func certificate(t *testing.T, change func(*x509.Certificate)) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// serve starts a TLS server with a fresh certificate and returns its address
// and the certificate.
func serve(t *testing.T, h http.Handler, change func(*x509.Certificate)) (address string, ca []byte) {
	t.Helper()
	cert, ca := certificate(t, change)
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, ca
}

// newTestClient is a client for a server started by serve.
func newTestClient(t *testing.T, o ClientOptions) *Client {
	t.Helper()
	if o.APIKey == "" {
		o.APIKey = testKey
	}
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	c.wait = func(context.Context, time.Duration) error { t.Error("an unexpected wait"); return nil }
	t.Cleanup(c.Close)
	return c
}

// script is what a server does with one stream. When it returns, the
// connection is dropped without a close frame.
type script func(t *testing.T, conn *websocket.Conn)

// openStream runs a script on a real socket over TLS and opens a stream to it.
// Bounds of the stream are changed by change.
func openStream(t *testing.T, s script, change func(*streamConfig)) *Stream {
	t.Helper()
	done := make(chan struct{})
	upgrader := websocket.Upgrader{}
	address, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		s(t, conn)
	}), nil)
	c := newTestClient(t, ClientOptions{BaseURL: address, CACert: ca})
	if change != nil {
		change(&c.stream)
	}
	stream, err := c.OpenStream(context.Background(), "wss"+strings.TrimPrefix(address, "https")+"/stream?token=tok-123")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stream.Close()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the server's script did not end")
		}
	})
	return stream
}

// say sends a text message as the server.
func say(t *testing.T, conn *websocket.Conn, text string) {
	if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Errorf("server: %v", err)
	}
}

// closeWith sends a close frame and waits for the client's.
func closeWith(conn *websocket.Conn, code int, text string) {
	payload := websocket.FormatCloseMessage(code, text)
	_ = conn.WriteControl(websocket.CloseMessage, payload, time.Now().Add(patience))
	drain(conn)
}

// drain reads until the connection is over.
func drain(conn *websocket.Conn) {
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

// untilEnd reads up to end_of_stream and returns how many chunks came.
func untilEnd(t *testing.T, conn *websocket.Conn) (chunks int) {
	samples := make([]float32, ChunkSamples)
	for {
		kind, payload, err := conn.ReadMessage()
		if err != nil {
			t.Errorf("server: %v", err)
			return chunks
		}
		if kind == websocket.TextMessage {
			if err := ParseClientMessage(payload); err != nil {
				t.Errorf("server: %v", err)
			}
			return chunks
		}
		if err := DecodeChunk(samples, payload); err != nil {
			t.Errorf("server: %v", err)
		}
		chunks++
	}
}

// collect receives all events and tells how the stream ended.
func collect(t *testing.T, s *Stream) ([]Event, CloseInfo) {
	t.Helper()
	var events []Event
	limit := time.After(patience)
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
	if err := s.Send(context.Background(), seq, make([]float32, ChunkSamples)); err != nil {
		t.Fatal(err)
	}
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
