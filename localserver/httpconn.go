package localserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// net/http answers a request that it cannot read by itself, in plain text and
// without a handler. It does so on the connection, so that is where these
// answers are replaced by those of the service. For this the connections that
// net/http gets are decrypted already.

// httpListener accepts connections for an http.Server.
type httpListener struct {
	net.Listener
	tls    *tls.Config // nil without TLS
	answer func(conn net.Conn, status int, message string)
	log    *slog.Logger
}

func (l *httpListener) Accept() (net.Conn, error) {
	tcp, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &httpConn{Conn: tcp, tcp: tcp, listener: l}
	if l.tls != nil {
		c.tls = tls.Server(tcp, l.tls)
		c.Conn = c.tls
	}
	return c, nil
}

// httpConn is a connection, decrypted.
type httpConn struct {
	net.Conn
	tcp      net.Conn
	tls      *tls.Conn // nil without TLS
	listener *httpListener

	ready   bool        // the handshake was made; used by the only reader
	handled atomic.Bool // what is written is the answer of a handler
	http2   atomic.Bool // what is written are frames
}

// NetConn returns the connection below TLS.
func (c *httpConn) NetConn() net.Conn { return c.tcp }

// CloseWrite is for net/http, which lets a client read an answer before it
// closes the connection.
func (c *httpConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *httpConn) Read(p []byte) (int, error) {
	if c.tls != nil && !c.ready {
		if !c.handshake() {
			return 0, io.EOF
		}
		c.ready = true
	}
	return c.Conn.Read(p)
}

// handshake makes the TLS handshake and reports whether it succeeded.
func (c *httpConn) handshake() bool {
	ctx, cancel := context.WithTimeout(context.Background(), headerTimeout)
	defer cancel()
	err := c.tls.HandshakeContext(ctx)
	var head tls.RecordHeaderError
	if errors.As(err, &head) && head.Conn != nil && looksLikeHTTP(head.RecordHeader) {
		_ = c.tcp.SetWriteDeadline(time.Now().Add(headerTimeout))
		c.listener.answer(c.tcp, http.StatusBadRequest, "This server requires TLS: its address begins with https")
	} else if err != nil {
		c.listener.log.Debug("TLS handshake failed", "remote", c.RemoteAddr().String(), "error", err)
	}
	return err == nil
}

// looksLikeHTTP reports whether a connection began with a method of HTTP instead
// of a TLS record.
func looksLikeHTTP(head [5]byte) bool {
	switch string(head[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "DELET", "OPTIO":
		return true
	}
	return false
}

// Write replaces answers of net/http itself. It writes each of them at once.
func (c *httpConn) Write(p []byte) (int, error) {
	if c.handled.Load() || c.http2.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return c.Conn.Write(p)
	}
	line, _, _ := strings.Cut(string(p), "\r\n")
	fields := strings.SplitN(line, " ", 3)
	status, err := strconv.Atoi(fields[min(1, len(fields)-1)])
	if err != nil {
		return c.Conn.Write(p)
	}
	message := "The request could not be read"
	switch status {
	case http.StatusBadRequest:
		message = "The request is not valid HTTP"
		if _, detail, ok := strings.Cut(line, ": "); ok { // one of the texts of net/http
			message += ": " + detail
		}
	case http.StatusExpectationFailed:
		message = "The only valid Expect is 100-continue"
	case http.StatusRequestHeaderFieldsTooLarge:
		message = headersTooLarge
	case http.StatusNotImplemented:
		message = "The only valid Transfer-Encoding is chunked"
	case http.StatusHTTPVersionNotSupported:
		message = "The versions of HTTP are 1.0, 1.1 and, with TLS, 2"
	}
	c.listener.answer(c.Conn, status, message)
	return len(p), nil
}

type connKey struct{}

// withConn is the ConnContext of an http.Server.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// idle is the ConnState of an http.Server: after a request, nothing is the
// answer of a handler until the next one.
func idle(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*httpConn); ok && state == http.StateIdle {
		c.handled.Store(false)
	}
}

// handled marks the connection of each request: what follows is its answer.
func handled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*httpConn); ok {
			c.http2.Store(r.ProtoMajor == 2)
			c.handled.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

// answerUnread answers a request that never became one, like any other: with an
// id, in the log and in the metrics.
func (s *Server) answerUnread(conn net.Conn, status int, message string) {
	r := &http.Request{URL: &url.URL{}, Header: http.Header{}, RemoteAddr: conn.RemoteAddr().String()}
	a := answer{headRecorder: headRecorder{header: http.Header{}}}
	s.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { refuse(w, r, status, message) })).ServeHTTP(&a, r)
	a.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	res := http.Response{StatusCode: a.status, ProtoMajor: 1, ProtoMinor: 1, Header: a.header, Close: true,
		Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len())}
	var raw bytes.Buffer
	_ = res.Write(&raw)            // a buffer takes everything
	_, _ = conn.Write(raw.Bytes()) // fails only if the client is gone
}

// answer is an answer that is not written to a connection yet.
type answer struct {
	headRecorder
	body bytes.Buffer
}

func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
