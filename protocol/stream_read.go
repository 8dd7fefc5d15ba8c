package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/gorilla/websocket"
)

// read is the reader goroutine.
func (s *Stream) read() {
	defer s.parted.Done()
	var cause error
	defer func() {
		info := s.ending(cause)
		s.mu.Lock()
		s.info = info
		s.mu.Unlock()
		s.tap.ended(info)
		if info.Code != 0 {
			_ = s.conn.Close() // the service is there: say good-bye in TLS, too
		} else {
			s.abort(info)
		}
		close(s.events)
		close(s.over)
	}()
	defer s.recovered("reading")
	for {
		s.armRead()
		kind, payload, err := s.conn.ReadMessage()
		if err != nil {
			cause = err
			return
		}
		if !s.deliver(s.event(kind, payload)) {
			return
		}
	}
}

// recovered keeps a panic in one of the stream's goroutines from ending the
// program: it ends the stream.
func (s *Stream) recovered(doing string) {
	if p := recover(); p != nil {
		s.abort(CloseInfo{Reason: Lost, Err: &hinted{hint: "this is a fault of hubbub", err: &networkError{
			text:  Clean(fmt.Sprintf("internal error while %s the stream: %v", doing, p), 200),
			cause: &defect{p, debug.Stack()},
		}}})
	}
}

// defect is a panic that was caught.
type defect struct {
	value any
	stack []byte
}

func (d *defect) Error() string { return fmt.Sprintf("panic: %v", d.value) }

// Stack is where it happened.
func (d *defect) Stack() []byte { return d.stack }

// event reads one message.
func (s *Stream) event(kind int, payload []byte) Event {
	var e Event
	if kind == websocket.TextMessage {
		e, _ = ParseEvent(payload) // Event.Err has the error
	} else {
		text := fmt.Sprintf("binary message of %d bytes", len(payload))
		e = Event{Raw: oneLine([]byte(text)), Err: text + ", which services do not send"}
	}
	e.Received = s.config.now()
	s.received.Add(1)
	s.tap.event(e, len(payload))
	return e
}

// deliver waits until the event is taken or the stream is closed.
func (s *Stream) deliver(e Event) bool {
	select {
	case s.events <- e:
		s.noteMessage(0)
		return true
	default:
	}
	begun := s.config.now()
	select {
	case s.events <- e:
		s.noteMessage(s.config.now().Sub(begun))
		return true
	case <-s.quit:
		s.undelivered.Add(1)
		return false
	}
}

func (s *Stream) noteMessage(stalled time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastMessage = s.config.now()
	if !s.ended.IsZero() {
		s.stalled += stalled
	}
}

// armRead sets the deadline of the next read: the service may be silent for
// readTimeout, and once end_of_stream is sent, for drainTimeout, pongs not
// counted, and drainLimit in all.
func (s *Stream) armRead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr != nil { // writeFailed has set a shorter one
		return
	}
	now := s.config.now()
	deadline := now.Add(s.config.readTimeout)
	if !s.ended.IsZero() {
		since := s.ended
		if s.lastMessage.After(since) {
			since = s.lastMessage
		}
		deadline = since.Add(s.config.drainTimeout)
		if limit := s.ended.Add(s.config.drainLimit + s.stalled); limit.Before(deadline) {
			deadline = limit
		}
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(deadline.Sub(now)))
}

// pong measures the round trip. gorilla calls it from within the reader.
func (s *Stream) pong(payload string) error {
	now := s.config.now()
	if p := s.pinged.Load(); p != nil && len(payload) == 8 && binary.BigEndian.Uint64([]byte(payload)) == p.number {
		s.rtt.Store(int64(max(time.Nanosecond, now.Sub(p.at))))
		s.arrived(p.sent)
	}
	s.tap.ponged(payload, now)
	s.armRead()
	return nil
}

// ending decides why the stream ended, from the error of the last read. The
// service's own word counts most, then what this side did, then what broke.
func (s *Stream) ending(cause error) CloseInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := !s.ended.IsZero()
	var frame *websocket.CloseError
	isFrame := errors.As(cause, &frame)
	if isFrame && frame.Code != websocket.CloseAbnormalClosure {
		return closedBy(frame.Code, frame.Text, ended || s.watch)
	}
	if s.abortInfo != nil {
		return *s.abortInfo
	}
	const again = "turns up to here are kept; check the network and start again"
	if s.writeErr != nil {
		cause = s.writeErr
		if isTimeout(cause) {
			return CloseInfo{Reason: TimedOut, Err: withHint(again, "the service took no audio for %s", s.config.writeTimeout)}
		}
	}
	switch {
	case isTimeout(cause) && ended:
		return CloseInfo{Reason: TimedOut, Err: withHint("turns up to here are kept; the last ones may be missing",
			"the service did not close the stream after end_of_stream (waited %s)", s.config.now().Sub(s.ended).Round(100*time.Millisecond))}
	case isTimeout(cause):
		return CloseInfo{Reason: TimedOut, Err: withHint(again, "nothing was heard from the service for %s", s.config.readTimeout)}
	case errors.Is(cause, websocket.ErrReadLimit):
		return CloseInfo{Reason: ProtocolError, Err: withHint(hintWrongService, "the service sent a message of more than %d bytes", s.config.maxMessage)}
	case isFrame: // gorilla's word for an end without a close frame
		return CloseInfo{Reason: Lost, Err: withHint(again, "the connection ended without a close")}
	case isGarbage(cause):
		return CloseInfo{Reason: ProtocolError, Err: withHint(hintWrongService, "what the service sent is not WebSocket: %s", Clean(cause.Error(), 200))}
	}
	return CloseInfo{Reason: Lost, Err: withHint(again, "the connection broke: %s", lastCause(cause))}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// isGarbage reports whether err is gorilla's complaint about a frame, and not
// the network's.
func isGarbage(err error) bool {
	var network net.Error
	const prefix = "websocket: "
	text := err.Error()
	return !errors.As(err, &network) && len(text) > len(prefix) && text[:len(prefix)] == prefix
}
