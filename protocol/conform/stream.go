package conform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

const (
	// promptly is the time in which an immediate message must arrive.
	promptly = 3 * time.Second
	// closeWait is how long the close of a stream is waited for: longer than the
	// 2 s that it may take, which tells late from never.
	closeWait = 10 * time.Second
	// statusWait is how long the final status is waited for after that.
	statusWait = 5 * time.Second
	// writeWait bounds one frame.
	writeWait = 10 * time.Second
	// maxKept bounds the messages of a stream that are kept, in bytes, with messageBytes for each.
	maxKept      = 16 << 20
	messageBytes = 512
)

// message is a message of the service.
type message struct {
	protocol.Event
	kind int           // of frame
	sent time.Duration // audio sent when it arrived, at most
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

// stream is an open stream, frame by frame. One goroutine reads; close ends it.
type stream struct {
	id   string
	conn *websocket.Conn
	over chan struct{} // closed by the reader at its end

	pings  atomic.Int32 // that have arrived
	pong   atomic.Bool  // whether they are answered
	ponged chan string  // the content of the first pong

	mu       sync.Mutex
	messages []message
	kept     int           // bytes
	more     chan struct{} // closed and replaced at every message
	end      ending
	chunks   int
}

func newStream(id string, conn *websocket.Conn) *stream {
	s := &stream{id: id, conn: conn, over: make(chan struct{}), more: make(chan struct{}), ponged: make(chan string, 1)}
	conn.SetReadLimit(1 << 20)
	s.pong.Store(true)
	conn.SetPingHandler(func(data string) error {
		if s.pings.Add(1); s.pong.Load() { // behind a chunk, longer than the second that the library's own handler waits
			_ = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWait))
		}
		return nil
	})
	conn.SetPongHandler(func(data string) error {
		select {
		case s.ponged <- data:
		default:
		}
		return nil
	})
	go s.read()
	return s
}

func (s *stream) read() {
	defer close(s.over)
	for {
		kind, raw, err := s.conn.ReadMessage()
		at := time.Now()
		s.mu.Lock()
		if err != nil {
			s.end = ending{over: true, at: at}
			if c, ok := errors.AsType[*websocket.CloseError](err); ok && c.Code != websocket.CloseAbnormalClosure {
				s.end.code, s.end.text = c.Code, protocol.Clean(c.Text, 125)
			}
		} else if s.kept += len(raw) + messageBytes; s.kept <= maxKept {
			e, _ := protocol.ParseEvent(raw) // errors are in Err
			e.Received = at
			s.messages = append(s.messages, message{Event: e, kind: kind, sent: time.Duration(s.chunks) * protocol.ChunkDuration})
		}
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// send sends a frame.
func (s *stream) send(kind int, body []byte) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeWait))
	return s.conn.WriteMessage(kind, body)
}

func (s *stream) text(body string) error { return s.send(websocket.TextMessage, []byte(body)) }

// chunk sends 100 ms of audio. It counts before it is sent: an event about it can
// arrive before the write returns.
func (s *stream) chunk(samples []float32) error {
	s.mu.Lock()
	s.chunks++
	s.mu.Unlock()
	return s.send(websocket.BinaryMessage, protocol.AppendChunk(nil, samples))
}

// sendBytes sends an audio frame of a size.
func (s *stream) sendBytes(size int) error {
	return s.send(websocket.BinaryMessage, make([]byte, size))
}

// sendInvalid sends 100 ms that contain a value which is not finite.
func (s *stream) sendInvalid(value float64) error {
	samples := make([]float32, protocol.ChunkSamples)
	samples[protocol.ChunkSamples/2] = float32(value)
	return s.chunk(samples)
}

// audio is the length of the audio that was sent.
func (s *stream) audio() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.chunks) * protocol.ChunkDuration
}

// received are the messages so far, and the end of the stream if it has ended.
func (s *stream) received() ([]message, ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages), s.end
}

// errorMessages are the texts of the error messages.
func errorMessages(all []message) (out []string) {
	for _, m := range all {
		if m.Type == protocol.TypeError {
			out = append(out, m.Message)
		}
	}
	return out
}

// wait waits until enough returns true, or the stream is over, or d has passed.
func (s *stream) wait(ctx context.Context, d time.Duration, enough func([]message) bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		s.mu.Lock()
		done, more := enough(s.messages) || s.end.over, s.more
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-more:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// waitEnd waits for the end of the stream.
func (s *stream) waitEnd(ctx context.Context, d time.Duration) {
	s.wait(ctx, d, func([]message) bool { return false })
}

// closeWith closes the stream with a code.
func (s *stream) closeWith(ctx context.Context, code int) {
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(writeWait))
	s.waitEnd(ctx, promptly)
	s.close()
}

// close drops the connection and waits for the reader.
func (s *stream) close() {
	_ = protocol.BelowTLS(s.conn.NetConn()).Close()
	<-s.over
}

var notFinite = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}
