package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/recovered"
)

const (
	// readTimeout is how long a connection may be silent, without even a
	// pong.
	readTimeout = 15 * time.Second
	// maxText bounds a text message, in bytes; the only valid one is short.
	maxText = 4 << 10
	// maxFrame is the size in bytes from which a frame closes the connection. It is far
	// larger than a chunk: a frame that is merely of the wrong size gets an error message,
	// and is discarded as it arrives so that it uses no memory.
	maxFrame = 1 << 30
)

const (
	errTextTooLong = "Text message is too long"
	errAfterEnd    = "Frames after end_of_stream are ignored"
)

// read takes frames from the socket until the connection ends. It sends chunks
// to the worker and rejects invalid frames with an error message. It closes
// s.chunks at the end of the input, with the reason in s.input, and from then
// on only waits for the client's close frame.
func (s *Stream) read() {
	r := reader{Stream: s, pacer: pacer{now: s.config.Now, unpaced: s.config.Unpaced}}
	if err := recovered.Guard(func() error { r.run(); return nil }); err != nil {
		s.log.Error("panic in a stream's reader", "error", err)
		r.end(internalError)
	}
}

type reader struct {
	*Stream
	pacer pacer
	ended bool // the input is over
	frame [protocol.ChunkBytes + 1]byte
}

func (r *reader) run() {
	warned := false
	r.end(endingOf(frames(r.conn, maxFrame, func(kind int, body io.Reader) {
		switch {
		case r.ended:
			if !warned && r.input == endOfStream {
				warned = true
				r.reject(errAfterEnd)
			}
		case kind == websocket.BinaryMessage:
			r.binaryFrame(body)
		default:
			r.textFrame(body)
		}
	})))
}

// frames gives every frame of a client to take, until the connection ends with an
// error. Frames of more than limit bytes and silence for readTimeout end it.
func frames(conn Socket, limit int64, take func(kind int, body io.Reader)) error {
	extendDeadline := func(string) error { return conn.SetReadDeadline(time.Now().Add(readTimeout)) }
	conn.SetReadLimit(limit)
	conn.SetPongHandler(extendDeadline)
	for {
		_ = extendDeadline("") // fails only with the connection, and then so does NextReader
		kind, body, err := conn.NextReader()
		if errors.Is(err, websocket.ErrReadLimit) { // the library says so to the client for most lengths only
			tooBig := websocket.FormatCloseMessage(websocket.CloseMessageTooBig, "")
			_ = conn.WriteControl(websocket.CloseMessage, tooBig, time.Now().Add(closeTimeout)) // no second one is sent
		}
		if err != nil {
			return err
		}
		take(kind, body)
	}
}

// end ends the input, once.
func (r *reader) end(why ending) {
	if !r.ended {
		r.ended = true
		r.input = why
		close(r.chunks)
	}
}

// binaryFrame takes one binary frame. It does not read more than a chunk: the next
// call of NextReader discards the rest.
func (r *reader) binaryFrame(body io.Reader) {
	n, err := io.ReadFull(body, r.frame[:])
	switch {
	case err == nil, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
	default:
		return // the connection was lost inside the frame
	}
	if n != protocol.ChunkBytes {
		r.reject(protocol.ErrChunkSize.Error())
		return
	}
	if !r.pacer.chunk() {
		r.end(tooFast)
		return
	}
	c := chunk{make([]float32, protocol.ChunkSamples), time.Now()}
	if err := protocol.DecodeChunk(c.samples, r.frame[:n]); err != nil {
		r.reject(err.Error()) // the chunk is silence now
	}
	select {
	case r.chunks <- c: // while there is no room, nothing is read from the socket
	case <-r.stop: // the worker takes no more chunks
	}
}

// textFrame takes one text frame.
func (r *reader) textFrame(body io.Reader) {
	text, err := io.ReadAll(io.LimitReader(body, maxText+1))
	if err != nil {
		return // the connection was lost inside the frame
	}
	if len(text) > maxText {
		r.reject(errTextTooLong)
	} else if err := protocol.ParseClientMessage(text); err != nil {
		r.reject(err.Error())
	} else {
		r.end(endOfStream)
	}
}

// reject responds to a frame with an error message.
func (r *reader) reject(message string) {
	r.counters.FrameErrors.Add(1)
	r.sendError(message)
}

// endingOf is how the client ended the connection, from a read error.
func endingOf(err error) ending {
	end := connectionLost
	if c, ok := errors.AsType[*websocket.CloseError](err); ok {
		switch c.Code {
		case websocket.CloseNormalClosure:
			return clientClose
		case websocket.CloseAbnormalClosure:
		default:
			end.cause = fmt.Sprintf("closed by the client with code %d", c.Code)
		}
	} else if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		end.cause = "the client fell silent"
	}
	return end
}
