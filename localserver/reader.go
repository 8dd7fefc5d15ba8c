package localserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
)

const (
	// readTimeout is how long a connection may say nothing at all, not even
	// answer a ping.
	readTimeout = 45 * time.Second
	// maxText bounds a text message, in bytes; the only legal one is short.
	maxText = 4 << 10
	// maxFrame ends a connection. It is far beyond what is merely a wrong
	// chunk: such a frame is thrown away as it arrives and holds no memory.
	maxFrame = 1 << 30
)

const (
	textTooLong = "Text message is too long"
	textIsOver  = "Frames after end_of_stream are ignored"
)

// read takes frames from the socket until the connection is over. Good chunks
// go to the worker, what is wrong is said at once. It closes chunks when the
// input is over, with the reason in input, and then only reads on to see the
// client's close.
func (s *session) read() {
	r := reader{session: s}
	if err := guarded(r.run); err != nil {
		s.log.Error("panic in a stream's reader", "error", err)
		r.over(broken)
	}
}

type reader struct {
	*session
	closed bool // the input is over
	frame  [protocol.ChunkBytes + 1]byte
}

func (r *reader) run() {
	r.conn.SetReadLimit(maxFrame)
	r.conn.SetPongHandler(func(string) error { return r.patience() })
	warned := false
	for {
		_ = r.patience() // fails only with the connection, and then so does the next call
		kind, body, err := r.conn.NextReader()
		if err != nil {
			r.over(verdict(err))
			return
		}
		switch {
		case r.closed:
			if !warned && r.input == endOfStream {
				warned = true
				r.say(textIsOver)
			}
		case kind == websocket.BinaryMessage:
			r.audio(body)
		default:
			r.text(body)
		}
	}
}

// patience restarts the time in which the client has to say something.
func (r *reader) patience() error { return r.conn.SetReadDeadline(time.Now().Add(r.readTimeout)) }

// over ends the input, once.
func (r *reader) over(why ending) {
	if !r.closed {
		r.closed = true
		r.input = why
		close(r.chunks)
	}
}

// audio takes one binary frame. What does not fit into a chunk is not read:
// the next call of NextReader throws it away.
func (r *reader) audio(body io.Reader) {
	n, err := io.ReadFull(body, r.frame[:])
	switch {
	case err == nil, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
	default:
		return // the connection broke inside the frame
	}
	if n != protocol.ChunkBytes {
		r.say(protocol.ErrChunkSize.Error())
		return
	}
	if !r.pace.chunk() {
		r.over(tooFast)
		return
	}
	samples, ok := r.room()
	if !ok {
		return
	}
	if samples == nil {
		samples = make([]float32, protocol.ChunkSamples)
	}
	if err := protocol.DecodeChunk(samples, r.frame[:n]); err != nil {
		r.say(err.Error()) // the chunk is silence now
	}
	r.stamps.came()
	r.chunks <- samples // never blocks: it holds as many as there are
}

// room is an empty chunk, nil for one that is not made yet. While there is none,
// nothing is read; ok is false when the worker takes no more.
func (r *reader) room() (samples []float32, ok bool) {
	select {
	case samples = <-r.free:
		return samples, true
	default:
	}
	r.pace.hold(true)
	defer r.pace.hold(false)
	select {
	case samples = <-r.free:
		return samples, true
	case <-r.stop:
		return nil, false
	}
}

// text takes one text frame.
func (r *reader) text(body io.Reader) {
	text, err := io.ReadAll(io.LimitReader(body, maxText+1))
	if err != nil {
		return // the connection broke inside the frame
	}
	if len(text) > maxText {
		r.say(textTooLong)
	} else if err := protocol.ParseClientMessage(text); err != nil {
		r.say(err.Error())
	} else {
		r.over(endOfStream)
	}
}

// say sends an error message.
func (r *reader) say(message string) {
	r.count.frameErrors.Add(1)
	r.writer.send(protocol.NewErrorEvent(message).Raw)
}

// verdict tells from the error of a read how the client left.
func verdict(err error) ending {
	end := lost
	var c *websocket.CloseError
	var n net.Error
	switch {
	case errors.As(err, &c) && c.Code == websocket.CloseNormalClosure:
		return clientClose
	case errors.As(err, &c) && c.Code != websocket.CloseAbnormalClosure:
		end.cause = fmt.Sprintf("closed by the client with code %d", c.Code)
	case errors.As(err, &n) && n.Timeout():
		end.cause = "the client fell silent"
	}
	return end
}
