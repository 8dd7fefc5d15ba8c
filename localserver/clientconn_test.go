package localserver

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol/testkit"
)

// clientConn is a client's end of a WebSocket that is read all the time, as
// real clients do. A connection that nobody reads sends no pongs, and the
// service closes it after 15 s: on a busy machine a test may take longer than
// that between two messages.
type clientConn struct {
	*websocket.Conn
	pongs    atomic.Int64
	messages chan message // closed at the end
	err      error        // why it ended, valid when messages is closed
}

type message struct {
	kind int
	raw  []byte
}

// newClientConn reads a connection, and closes it after the test.
func newClientConn(t testing.TB, conn *websocket.Conn) *clientConn {
	c := &clientConn{Conn: conn, messages: make(chan message, 1024)}
	c.SetPongHandler(func(string) error { c.pongs.Add(1); return nil })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(c.messages)
		for {
			kind, raw, err := conn.ReadMessage()
			if err != nil {
				c.err = err
				return
			}
			select {
			case c.messages <- message{kind, raw}:
			case <-t.Context().Done():
				c.err = t.Context().Err()
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return c
}

// rawConn is a client's end of a connection on which a test writes what it wants.
type rawConn struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

// connect connects to a server until the end of the test, with TLS if the server has it.
func (h *host) connect() *rawConn {
	h.t.Helper()
	conn := testkit.Must(net.Dial("tcp", h.Addr().String()))(h.t)
	if h.tls != nil {
		config := h.dial.TLSClientConfig.Clone()
		config.ServerName = "localhost"
		conn = tls.Client(conn, config)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testkit.Timeout))
	return &rawConn{conn, h.t, bufio.NewReader(conn)}
}

// CloseWrite closes the sending side.
func (c *rawConn) CloseWrite() { _ = c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// response reads the next response.
func (c *rawConn) response() reply {
	c.t.Helper()
	return read(c.t, testkit.Must(http.ReadResponse(c.in, nil))(c.t))
}

// isTimeout reports whether an error is, or wraps, a timeout.
func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// ReadMessage returns the next message, which has to arrive within testkit.Timeout.
func (c *clientConn) ReadMessage() (kind int, raw []byte, err error) {
	return c.readWithin(testkit.Timeout)
}

// readWithin returns the next message, or os.ErrDeadlineExceeded.
func (c *clientConn) readWithin(d time.Duration) (kind int, raw []byte, err error) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case m, ok := <-c.messages:
		if !ok {
			return 0, nil, c.err
		}
		return m.kind, m.raw, nil
	case <-late.C:
		return 0, nil, os.ErrDeadlineExceeded
	}
}
