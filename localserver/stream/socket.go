package stream

import (
	"errors"
	"io"
	"net"
	"time"

	"hubbub/protocol"
)

const (
	// sendBuffer and receiveBuffer bound what the operating system buffers for
	// one connection, in bytes: some hundreds of events for a client that does
	// not read, and four seconds of audio for a diarizer that does not keep up.
	sendBuffer    = 64 << 10
	receiveBuffer = 256 << 10
)

// Socket is the part of *websocket.Conn that a stream uses.
type Socket interface {
	SetReadLimit(bytes int64)
	SetReadDeadline(t time.Time) error
	SetPongHandler(h func(data string) error)
	NextReader() (kind int, body io.Reader, err error)
	SetWriteDeadline(t time.Time) error
	WriteMessage(kind int, data []byte) error
	WriteControl(kind int, data []byte, deadline time.Time) error
	NetConn() net.Conn
	Close() error
}

// limitBuffers sets the sizes of the operating system's buffers.
func limitBuffers(conn Socket) {
	if t, ok := protocol.BelowTLS(conn.NetConn()).(*net.TCPConn); ok {
		_ = errors.Join(t.SetWriteBuffer(sendBuffer), t.SetReadBuffer(receiveBuffer)) // best effort
	}
}

// abort closes a connection at once.
func abort(conn Socket) { _ = protocol.BelowTLS(conn.NetConn()).Close() }
