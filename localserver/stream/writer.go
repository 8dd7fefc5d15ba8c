package stream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/recovered"
)

const (
	// queuedMessages is how many messages wait for the socket. Beyond it, send
	// waits.
	queuedMessages = 64
	// writeTimeout is how long a client may not read.
	writeTimeout = 10 * time.Second
	// pingInterval keeps a connection alive and detects a dead one: well within
	// readTimeout and the idle timeouts of proxies.
	pingInterval = 5 * time.Second
	// closeTimeout is how long a client has to acknowledge a close frame. Until then
	// what it sends is read and discarded: closing a connection with unread
	// bytes would reset it before the close frame arrives.
	closeTimeout = 2 * time.Second
	// lastReadTimeout is how long a connection that can no longer be written to
	// is read, for a close frame of the client.
	lastReadTimeout = time.Second
)

// writer is the only goroutine that writes to a socket.
//
// A client that does not read fills the operating system's buffers, then the
// queue, and then delays its own stream; after writeTimeout it is
// disconnected. It cannot be told why, since a frame may be half written.
type writer struct {
	conn       Socket
	log        *slog.Logger
	queue      chan message
	done       chan struct{} // closed when nothing more is written
	readerDone chan struct{} // closed when nothing more is read
	timedOut   atomic.Bool   // the client did not read

	closeTimeout time.Duration
}

// message is a text, or how the connection ends, after which nothing follows.
type message struct {
	raw []byte
	end *ending
}

func newWriter(conn Socket, log *slog.Logger) *writer {
	limitBuffers(conn)
	return &writer{conn: conn, log: log, queue: make(chan message, queuedMessages), done: make(chan struct{}), readerDone: make(chan struct{}),
		closeTimeout: closeTimeout}
}

// start starts the reader and the writer of the socket. Canceling ctx disconnects the
// client, until stop.
func (w *writer) start(ctx context.Context, read func()) (stop func() bool) {
	go func() {
		defer close(w.readerDone)
		read()
	}()
	go w.run()
	return context.AfterFunc(ctx, func() { abort(w.conn) })
}

// send queues a text message and waits for room. Once the connection cannot be
// written to any more, it discards the message.
func (w *writer) send(raw []byte) { w.enqueue(message{raw: raw}) }

// finish queues the last messages of a stream. It does not wait until they are
// written; done is closed then.
func (w *writer) finish(end ending) {
	if end.message != "" {
		w.send(protocol.NewErrorEvent(end.message).Raw)
	}
	w.enqueue(message{end: &end})
}

func (w *writer) enqueue(m message) {
	select {
	case w.queue <- m:
	case <-w.done:
	}
}

// discard empties the queue.
func (w *writer) discard() {
	for {
		select {
		case <-w.queue:
		default:
			return
		}
	}
}

// run writes until the last message or the first failure. After a failure the
// reader has lastReadTimeout to receive a close frame; then the connection is
// closed, which ends the reader.
func (w *writer) run() {
	defer close(w.done)
	failure := recovered.Guard(w.write)
	if failure == nil {
		return
	}
	if recovered.Caught(failure) {
		w.log.Error("panic in a stream's writer", "error", failure)
	}
	if n, ok := errors.AsType[net.Error](failure); ok && n.Timeout() {
		w.timedOut.Store(true)
		w.log.Warn("the client does not read; it is disconnected")
	}
	time.AfterFunc(lastReadTimeout, func() { abort(w.conn) })
}

func (w *writer) write() error {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		select {
		case m := <-w.queue:
			if m.end != nil {
				return w.sendClose(*m.end)
			}
			_ = w.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only with the connection, and then so does the write
			if err := w.conn.WriteMessage(websocket.TextMessage, m.raw); err != nil {
				return err
			}
		case <-ping.C:
			if err := w.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)); err != nil {
				return err
			}
		}
	}
}

// close waits until the close frame that finish queued was sent and the client has
// acknowledged it, at most closeTimeout, and closes the connection. Then neither the
// reader nor the writer is left.
func (w *writer) close(end ending) {
	if end.code != 0 {
		ctx, cancel := context.WithTimeout(context.Background(), w.closeTimeout)
		defer cancel()
		// A client that has closed its sending side acknowledges nothing, but reads.
		waitFor(ctx, w.done)
		waitFor(ctx, w.readerDone)
	}
	_ = w.conn.Close()
	<-w.readerDone
	<-w.done
}

// sendClose sends a close frame, unless the connection is lost.
func (w *writer) sendClose(end ending) error {
	if end.code == 0 {
		return nil
	}
	return w.conn.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(end.code, end.text), time.Now().Add(writeTimeout))
}
