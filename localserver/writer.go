package localserver

import (
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

const (
	// queuedMessages is how many messages wait for the socket; then whoever
	// has one more waits too.
	queuedMessages = 64
	// writeTimeout is how long a client may refuse to read.
	writeTimeout = 10 * time.Second
	// pingEvery keeps a connection awake and finds a dead one: well within
	// readTimeout, and within what proxies allow.
	pingEvery = 15 * time.Second
	// lastWords is how long a connection that can no longer be written to is
	// read for the client's own close.
	lastWords = time.Second
)

// writer is the only one that writes to a stream's socket, in the order in
// which it was told.
//
// A client that does not read fills the system's buffers, then the queue, and
// then holds up its own stream alone; after writeTimeout it is cut off. There
// is no telling it why: a frame may be half sent.
type writer struct {
	conn  socket
	log   *slog.Logger
	queue chan message
	done  chan struct{} // closed when nothing more is written
	slow  atomic.Bool   // the client did not read

	pingEvery, writeTimeout time.Duration
	linger                  time.Duration // how long the client has to answer a close
}

// message is a text, or a close when code is not 0.
type message struct {
	raw  []byte
	code int
	text string
	last bool
}

func newWriter(conn socket, log *slog.Logger, pingEvery, writeTimeout time.Duration) *writer {
	return &writer{conn: conn, log: log, queue: make(chan message, queuedMessages), done: make(chan struct{}),
		pingEvery: pingEvery, writeTimeout: writeTimeout, linger: linger}
}

// send queues a text message and waits for room. Once the connection cannot be
// written to any more it throws the message away.
func (w *writer) send(raw []byte) { w.put(message{raw: raw}) }

// finish queues the last words of a stream. It does not wait until they are
// written; done tells.
func (w *writer) finish(end ending) {
	if end.message != "" {
		w.send(protocol.NewErrorEvent(end.message).Raw)
	}
	w.put(message{code: end.code, text: end.text, last: true})
}

func (w *writer) put(m message) {
	select {
	case w.queue <- m:
	case <-w.done:
	}
}

// drop throws away what is queued.
func (w *writer) drop() {
	for {
		select {
		case <-w.queue:
		default:
			return
		}
	}
}

// run writes until the last message or the first failure. After a failure the
// reader has a moment to find out whether the client has said goodbye, until
// read is closed; then the connection is taken down, which ends the reader.
func (w *writer) run(read <-chan struct{}) {
	defer close(w.done)
	var failure error
	if err := guarded(func() { failure = w.write() }); err != nil {
		w.log.Error("panic in a stream's writer", "error", err)
		failure = err
	}
	if failure == nil {
		return
	}
	var slow net.Error
	if errors.As(failure, &slow) && slow.Timeout() {
		w.slow.Store(true)
		w.log.Warn("the client does not read; the connection is cut off")
	}
	// From here on nobody waits for this goroutine to take messages: done is
	// not closed yet, so drain them.
	deadline := time.NewTimer(lastWords)
	defer deadline.Stop()
	for {
		select {
		case <-w.queue:
			continue
		case <-read:
		case <-deadline.C:
		}
		cutOff(w.conn)
		return
	}
}

func (w *writer) write() error {
	ping := time.NewTicker(w.pingEvery)
	defer ping.Stop()
	for {
		select {
		case m := <-w.queue:
			if m.last {
				return w.goodbye(m)
			}
			if err := w.conn.SetWriteDeadline(time.Now().Add(w.writeTimeout)); err != nil {
				return err
			}
			if err := w.conn.WriteMessage(websocket.TextMessage, m.raw); err != nil {
				return err
			}
		case <-ping.C:
			if err := w.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(w.writeTimeout)); err != nil {
				return err
			}
		}
	}
}

// hangUp waits a while for the client to answer the close that finish queued,
// and takes the connection down. read is closed when the reader has returned;
// then neither of the two is left.
func (w *writer) hangUp(end ending, read <-chan struct{}) {
	if end.code != 0 {
		select {
		case <-read:
		case <-time.After(w.linger):
		}
	}
	_ = w.conn.Close()
	<-read
	<-w.done
}

// cutOff takes a connection down at once. Closing it in order would first wait
// five seconds to tell TLS, on a connection that takes nothing any more.
func cutOff(conn socket) { _ = systemConn(conn.NetConn()).Close() }

// systemConn reaches through TLS to the connection of the system.
func systemConn(conn net.Conn) net.Conn {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return conn
}

// goodbye sends the close, if there is anybody to send it to.
func (w *writer) goodbye(m message) error {
	if m.code == 0 {
		return nil
	}
	return w.conn.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(m.code, m.text), time.Now().Add(w.writeTimeout))
}
