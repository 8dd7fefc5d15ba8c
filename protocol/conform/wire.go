package conform

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

const (
	// soon is within what a service has to say something at once.
	soon = 3 * time.Second
	// closeWait is how long the end of a stream is waited for: longer than the
	// 2 s that it may take, to tell late from never.
	closeWait = 10 * time.Second
	// settleWait is how long a status is waited for after that.
	settleWait = 5 * time.Second
	// writeWait bounds one frame.
	writeWait = 10 * time.Second
	// maxHeard bounds the messages of a stream that are kept.
	maxHeard = 10000
)

// heard is a message of the service.
type heard struct {
	protocol.Event
	kind int           // of frame
	sent time.Duration // audio that was sent when it came, at most
}

// ending is how a connection ended.
type ending struct {
	over bool
	code int // of the close frame; 0 without one
	text string
	at   time.Time
}

func (e ending) String() string {
	switch {
	case !e.over:
		return "the stream stayed open"
	case e.code == 0:
		return "the connection ended without a close frame"
	case e.text == "":
		return fmt.Sprintf("the stream was closed with %d", e.code)
	}
	return fmt.Sprintf("the stream was closed with %d %q", e.code, e.text)
}

// wire is an open stream, frame by frame. One goroutine reads; close ends it.
type wire struct {
	id   string
	conn *websocket.Conn
	over chan struct{} // closed by the reader at its end

	mu     sync.Mutex
	heard  []heard
	more   chan struct{} // closed and replaced with every message
	end    ending
	chunks int
}

func listen(id string, conn *websocket.Conn) *wire {
	w := &wire{id: id, conn: conn, over: make(chan struct{}), more: make(chan struct{})}
	conn.SetReadLimit(1 << 20)
	go w.read()
	return w
}

func (w *wire) read() {
	defer close(w.over)
	for {
		kind, raw, err := w.conn.ReadMessage()
		at := time.Now()
		w.mu.Lock()
		if err != nil {
			w.end = ending{over: true, at: at}
			var c *websocket.CloseError
			if errors.As(err, &c) && c.Code != websocket.CloseAbnormalClosure {
				w.end.code, w.end.text = c.Code, protocol.Clean(c.Text, 125)
			}
		} else if len(w.heard) < maxHeard {
			e, _ := protocol.ParseEvent(raw) // what is wrong stands in Err
			e.Received = at
			w.heard = append(w.heard, heard{Event: e, kind: kind, sent: time.Duration(w.chunks) * protocol.ChunkDuration})
		}
		close(w.more)
		w.more = make(chan struct{})
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// frame sends one.
func (w *wire) frame(kind int, body []byte) error {
	_ = w.conn.SetWriteDeadline(time.Now().Add(writeWait))
	return w.conn.WriteMessage(kind, body)
}

func (w *wire) text(s string) error { return w.frame(websocket.TextMessage, []byte(s)) }

// chunk sends 100 ms of audio. It counts before it goes: an event about it can
// be here before the write returns.
func (w *wire) chunk(samples []float32) error {
	w.mu.Lock()
	w.chunks++
	w.mu.Unlock()
	return w.frame(websocket.BinaryMessage, protocol.AppendChunk(nil, samples))
}

// spoilt sends 100 ms that hold a value which is no number.
func (w *wire) spoilt(value float64) error {
	samples := make([]float32, protocol.ChunkSamples)
	samples[protocol.ChunkSamples/2] = float32(value)
	return w.chunk(samples)
}

// audio is how much was sent.
func (w *wire) audio() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.chunks) * protocol.ChunkDuration
}

// all is what was heard so far, and how it ended if it has.
func (w *wire) all() ([]heard, ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]heard(nil), w.heard...), w.end
}

// errorsHeard are the error messages among them.
func errorsHeard(all []heard) (out []string) {
	for _, h := range all {
		if h.Type == protocol.TypeError {
			out = append(out, h.Message)
		}
	}
	return out
}

// wait waits until enough says that it is, or the stream is over, or d has
// passed. It reports whether enough did.
func (w *wire) wait(ctx context.Context, d time.Duration, enough func([]heard) bool) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		w.mu.Lock()
		ok, over, more := enough(w.heard), w.end.over, w.more
		w.mu.Unlock()
		if ok || over {
			return ok
		}
		select {
		case <-more:
		case <-t.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// says waits for one more error message than n.
func (w *wire) says(ctx context.Context, n int, within time.Duration) bool {
	return w.wait(ctx, within, func(all []heard) bool { return len(errorsHeard(all)) > n })
}

// rest waits for the end.
func (w *wire) rest(ctx context.Context, d time.Duration) {
	w.wait(ctx, d, func([]heard) bool { return false })
}

// leave closes the stream as a client that has a reason to.
func (w *wire) leave(ctx context.Context, code int) {
	_ = w.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(writeWait))
	w.rest(ctx, soon)
	w.close()
}

// close takes the connection down and waits for the reader.
func (w *wire) close() {
	raw := w.conn.NetConn()
	if t, ok := raw.(*tls.Conn); ok { // whose own Close waits for a peer that may be gone
		raw = t.NetConn()
	}
	_ = raw.Close()
	<-w.over
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end.at.IsZero() {
		w.end.at = time.Now()
	}
}

var notFinite = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}
