// Package httpconn accepts the connections of an HTTP server, decrypts them, and
// replaces the responses that net/http writes without calling a handler.
//
// net/http rejects a request that it cannot read in plain text, directly on the
// connection. A Conn recognises such a response and replaces it by one of the service.
// To see it, a Conn decrypts TLS itself.
package httpconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// handshakeTimeout bounds the TLS handshake.
const handshakeTimeout = 10 * time.Second

// Listener accepts connections for an http.Server.
type Listener struct {
	net.Listener
	TLS *tls.Config // nil without TLS
	// Reject writes the response to a request that net/http cannot read.
	Reject func(conn net.Conn, status int, message string)
	Log    *slog.Logger
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	tcp, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: tcp, tcp: tcp, listener: l}
	if l.TLS != nil {
		c.tls = tls.Server(tcp, l.TLS)
		c.Conn = c.tls
	}
	return c, nil
}

// Conn is a connection, decrypted.
type Conn struct {
	net.Conn
	tcp      net.Conn
	tls      *tls.Conn // nil without TLS
	listener *Listener

	made    bool        // the handshake was made; used by the goroutine that reads only
	failed  bool        // it did not succeed
	handled atomic.Bool // what is written comes from a handler
}

// NetConn returns the connection below TLS.
func (c *Conn) NetConn() net.Conn { return c.tcp }

// CloseWrite is for net/http, which lets a client read a response before it
// closes the connection. Connections of TCP and TLS have it.
func (c *Conn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// Read makes the TLS handshake first, once: net/http reads again after an error.
func (c *Conn) Read(p []byte) (int, error) {
	if c.tls != nil && !c.made {
		c.made, c.failed = true, !c.handshake()
	}
	if c.failed {
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

// handshake makes the TLS handshake and reports whether it succeeded.
func (c *Conn) handshake() bool {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	err := c.tls.HandshakeContext(ctx)
	if head, ok := errors.AsType[tls.RecordHeaderError](err); ok && head.Conn != nil && looksLikeHTTP(head.RecordHeader) {
		_ = c.tcp.SetWriteDeadline(time.Now().Add(handshakeTimeout))
		c.listener.Reject(c.tcp, http.StatusBadRequest, "This server requires TLS: its address begins with https")
	} else if err != nil {
		c.listener.Log.Debug("TLS handshake failed", "remote", c.RemoteAddr().String(), "error", err)
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

// Write replaces responses of net/http itself, which come in one call each.
func (c *Conn) Write(p []byte) (int, error) {
	if c.handled.Load() || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return c.Conn.Write(p)
	}
	line, _, _ := strings.Cut(string(p), "\r\n")
	_, line, _ = strings.Cut(line, " ")
	code, text, _ := strings.Cut(line, " ") // such as Bad Request: missing required Host header
	status, err := strconv.Atoi(code)
	if err != nil {
		return c.Conn.Write(p)
	}
	c.listener.Reject(c.Conn, status, "The request could not be read: "+text)
	return len(p), nil
}

type connKey struct{}

// Context is the ConnContext of an http.Server.
func Context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// State is the ConnState of an http.Server: between two requests, what is written is
// not the response of a handler.
func State(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*Conn); ok && state == http.StateIdle {
		c.handled.Store(false)
	}
}

// Handled marks the connection of each request: what follows is its response.
func Handled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*Conn); ok {
			c.handled.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}
