package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
	"hubbub/protocol/trace"
)

// read is the reader goroutine.
func (s *Stream) read() {
	var cause error
	defer func() {
		info := s.ending(cause)
		s.tracer.ended(info)
		if info.Code != 0 {
			_ = s.conn.Close() // the service is there: close TLS in order, too
		}
		s.abort(info)
		s.mu.Lock()
		s.info = &info // says more than the cause of an abort before
		s.mu.Unlock()
		close(s.events)
	}()
	defer s.recovered("reading the stream")
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

// recovered ends the stream when one of its goroutines panics.
func (s *Stream) recovered(doing string) {
	if p := recover(); p != nil {
		s.abort(internalError(doing, p))
	}
}

// internalError is the end of a stream by a panic of our own.
func internalError(doing string, panicked any) CloseInfo {
	return CloseInfo{Reason: Lost, Err: hint.Add(&networkError{
		text:  protocol.Clean(fmt.Sprintf("internal error while %s: %v", doing, panicked), 200),
		cause: recovered.New(doing, panicked),
	}, "This is a defect of hubbub.")}
}

// event parses one message, and puts its times on the capture clock.
func (s *Stream) event(kind int, payload []byte) protocol.Event {
	var e protocol.Event
	if kind == websocket.TextMessage {
		e, _ = protocol.ParseEvent(payload) // Event.Err has the error
	} else {
		text := fmt.Sprintf("binary message of %d bytes", len(payload))
		e = protocol.Event{Raw: protocol.OneLine([]byte(text)), Err: text + ", which services do not send"}
	}
	e.Received = time.Now()
	if clean := s.redactor.Text(e.Message); clean != e.Message {
		e.Message, e.Raw = clean, s.redactor.JSON(e.Raw)
	}
	if e.Err != "" && kind == websocket.TextMessage {
		e.Err += ": " + protocol.Clean(string(s.redactor.JSON(payload)), 120)
	}
	if e.IsTurn() {
		s.mu.Lock()
		e.Lag = s.times.lag(e.Timestamp, e.Received.Sub(s.opened))
		if e.Fault = s.fault(e); e.Fault == "" {
			s.decided = max(s.decided, e.Timestamp)
			notify(s.acks)
		}
		s.mu.Unlock()
	}
	captured := s.onCaptureClock(e)
	s.tracer.event(e, len(payload), captured.Timestamp)
	return captured
}

// fault is what is wrong with a start or an end. A watcher cannot tell: it may have begun in the middle, and knows no
// audio. The chunk that is being sent is not counted yet.
func (s *Stream) fault(e protocol.Event) string {
	label := protocol.Label(e.Speaker)
	since, open := s.open[label]
	switch start := e.Type == protocol.TypeSpeakerStart; {
	case s.receiveOnly:
	case e.Timestamp > float64(s.sent+1)*protocol.ChunkDuration.Seconds():
		return "after all audio"
	case start && open:
		return "already open"
	case start:
		if len(s.open) < protocol.MaxLabels {
			s.open[label] = e.Timestamp
		}
	case !open:
		return "no open turn"
	default:
		delete(s.open, label)
		if e.Timestamp <= since {
			return "not after its start"
		}
	}
	return ""
}

// deliver waits until the event is received or the stream is closed. It returns
// false in the second case.
func (s *Stream) deliver(e protocol.Event) bool {
	begun := time.Now()
	select {
	case s.events <- e:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lastMessage = time.Now()
		if !s.endSent.IsZero() || s.writeErr != nil {
			s.stalled += s.lastMessage.Sub(begun)
		}
		return true
	case <-s.ctx.Done():
		return false
	}
}

// armRead sets the deadline of the next read: the service may be silent for
// readTimeout. After end_of_stream it may be silent for drainTimeout; it may send
// pongs that acknowledge nothing for longer by as much audio as it has not decided,
// and anything without progress for drainLimit. A service that is slow has longer.
func (s *Stream) armRead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, delay := time.Now(), s.serviceDelay()
	deadline := now.Add(readTimeout + delay)
	switch {
	case s.writeErr != nil:
		deadline = s.failedAt.Add(s.config.writeGrace + s.stalled)
	case !s.endSent.IsZero():
		deadline = slices.MinFunc([]time.Time{
			now.Add(drainTimeout + delay),
			slices.MaxFunc([]time.Time{s.progress, s.lastMessage}, time.Time.Compare).Add(drainTimeout + s.undecided() + delay),
			s.progress.Add(drainLimit + s.stalled + s.config.patience),
		}, time.Time.Compare)
	}
	_ = s.conn.SetReadDeadline(deadline)
}

// undecided is the audio behind the newest event, except that of a usual latency:
// what a service that decides about all audio at its end has to do then. s.mu is
// held.
func (s *Stream) undecided() time.Duration {
	decided := time.Duration(s.decided * float64(time.Second))
	return min(max(time.Duration(s.sent)*protocol.ChunkDuration-decided-assumedLatency, 0), maxServiceDelay)
}

// serviceDelay is how far behind the service is: the time that it took to respond to the
// newest ping, or that the oldest has waited for a response; 0 when it responds to each
// before the next. It responds to a ping when it has read the audio before it, so a
// slow service is silent for about as long again. s.mu is held.
func (s *Stream) serviceDelay() time.Duration {
	behind := s.rtt
	if len(s.pings) > 0 {
		behind = max(behind, time.Since(s.pings[0].at))
	}
	if behind < s.config.pingEvery {
		behind = 0
	}
	return min(behind, maxServiceDelay) + s.config.patience
}

// pong measures the round-trip time, and acknowledges the audio before the ping.
// gorilla calls it from within the reader.
func (s *Stream) pong(payload string) error {
	took := time.Duration(0)
	if len(payload) == 8 {
		took = s.acknowledge(binary.BigEndian.Uint64([]byte(payload)), time.Now())
	}
	s.tracer.ponged(len(payload), took)
	s.armRead()
	return nil
}

// acknowledge notes that the service has read a ping, and so everything before it. It
// returns the round-trip time; 0 = not known.
func (s *Stream) acknowledge(number uint64, now time.Time) (took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number > s.lastPing {
		return 0 // not one of ours
	}
	for len(s.pings) > 0 && s.pings[0].number <= number {
		p := s.pings[0]
		s.pings = s.pings[1:]
		took = max(time.Nanosecond, now.Sub(p.at))
		if s.endSent.IsZero() || p.sent > s.acked { // else the service is as slow as it was
			s.rtt = took
		}
		if p.sent > s.acked {
			s.acked, s.progress = p.sent, now
			notify(s.acks)
			if s.firstAcked.IsZero() {
				s.firstAcked = now
			}
		}
	}
	return took
}

// nextPing is the number of a ping that is about to be sent. The ping is remembered
// if fewer than maxPings are unanswered: those before it are answered first.
func (s *Stream) nextPing() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastPing++
	s.beforePing = s.sent
	if len(s.pings) < maxPings {
		s.pings = append(s.pings, ping{number: s.lastPing, at: time.Now(), sent: s.sent})
	}
	return s.lastPing
}

// ending decides why the stream ended, from the error of the last read. A close
// frame of the service counts first, then what this side did, then the error.
func (s *Stream) ending(cause error) CloseInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := !s.endSent.IsZero()
	var frame *websocket.CloseError
	var code int
	isFrame := errors.As(cause, &frame)
	if isFrame && frame.Code != websocket.CloseAbnormalClosure {
		return closedBy(frame.Code, s.redactor.Text(frame.Text), ended || s.receiveOnly && frame.Code == websocket.CloseNormalClosure)
	}
	if _, _ = fmt.Sscanf(fmt.Sprint(cause), "websocket: bad close code %d", &code); code >= 1000 { // for the library, also 1014
		return closedBy(code, "", ended)
	}
	if s.info != nil {
		return *s.info
	}
	const again = "Turns up to here are kept; check the network and start again."
	if s.writeErr != nil {
		cause = s.writeErr
		if isTimeout(cause) {
			return CloseInfo{Reason: TimedOut, Err: hint.Errorf(again, "the service accepted no audio for %s", s.config.writeTimeout)}
		}
	}
	switch {
	case isTimeout(cause) && ended:
		return CloseInfo{Reason: TimedOut, Err: hint.Errorf("Turns up to here are kept; the last ones may be missing.",
			"the service did not close the stream after end_of_stream (waited %s)", time.Since(s.endSent).Round(100*time.Millisecond))}
	case isTimeout(cause):
		return CloseInfo{Reason: TimedOut, Err: hint.Errorf(again, "the service sent nothing for %s", readTimeout)}
	case errors.Is(cause, websocket.ErrReadLimit):
		return CloseInfo{Reason: ProtocolError, Err: hint.Errorf(hintWrongService, "the service sent a message of more than %d bytes", maxMessageBytes)}
	case isFrame: // gorilla reports an end without a close frame as one
		return CloseInfo{Reason: Lost, Err: hint.Errorf(again, "the connection ended without a close")}
	case errno.Is(cause, syscall.ECONNRESET, syscall.EPIPE):
		// Of a reset, the system tells only the reader or a writer; for the other the connection has ended.
		return CloseInfo{Reason: Lost, Err: hint.Errorf(again, "the connection ended without a close: %s", lastCause(cause))}
	case isInvalidFrame(cause):
		return CloseInfo{Reason: ProtocolError, Err: hint.Errorf(hintWrongService, "what the service sent is not WebSocket: %s", protocol.Clean(cause.Error(), 200))}
	}
	return CloseInfo{Reason: Lost, Err: hint.Errorf(again, "the connection broke: %s", lastCause(cause))}
}

// isTimeout also holds for context.DeadlineExceeded.
func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// isInvalidFrame reports whether err is gorilla's about a frame, and not the
// network's.
func isInvalidFrame(err error) bool {
	var network net.Error
	return !errors.As(err, &network) && strings.HasPrefix(err.Error(), "websocket: ")
}

// maxPings bounds the unanswered pings that are remembered.
const maxPings = 1024

// ping is a ping that was sent.
type ping struct {
	number uint64
	at     time.Time
	sent   int64 // chunks before it
}

// checkOpen is overError once the stream has ended, or nil.
func (s *Stream) checkOpen() error {
	if s.ctx.Err() != nil {
		return s.overError()
	}
	return nil
}

// overError is ErrStreamOver with the reason, if that is known.
func (s *Stream) overError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info != nil && s.info.Err != nil {
		return fmt.Errorf("%w: %w", ErrStreamOver, s.info.Err)
	}
	return ErrStreamOver
}

// write sends one message.
func (s *Stream) write(kind int, payload []byte) error {
	_ = s.conn.SetWriteDeadline(s.writeDeadline())
	err := s.conn.WriteMessage(kind, payload)
	if err == nil {
		return nil
	}
	s.writeFailed(err)
	// A close frame of the service says more than a broken pipe; the reader
	// finds it within writeGrace.
	_ = protocol.Sleep(s.ctx, 2*s.config.writeGrace)
	return s.overError()
}

// writeDeadline is that of a message which is sent now.
func (s *Stream) writeDeadline() time.Time {
	return time.Now().Add(s.config.writeTimeout + s.config.patience)
}

// writeFailed notes the first failed write and gives the reader writeGrace to
// find a close frame, besides the time that the receiver of Events takes. After the
// library has sent a close frame, the reader knows why.
func (s *Stream) writeFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr != nil || errors.Is(err, websocket.ErrCloseSent) {
		return
	}
	s.writeErr, s.failedAt, s.stalled = err, time.Now(), 0
	_ = s.conn.SetReadDeadline(s.failedAt.Add(s.config.writeGrace))
}

// pinged notes a ping of the service for the pinger: the reader does not wait for a service
// that reads nothing. Of several pings, the newest is answered (RFC 6455, 5.5.3). A service that
// reads slowly is late with its pongs, and not with its pings. gorilla calls it from within
// the reader.
func (s *Stream) pinged(payload string) error {
	s.tracer.put(trace.Record{Dir: trace.Incoming, Kind: trace.KindPing, Size: len(payload)})
	select {
	case <-s.pongs:
	default:
	}
	s.pongs <- payload // the reader alone fills it
	s.armRead()
	return nil
}

// ping is the pinger goroutine. It sends a ping at once, for a first round-trip
// time, one behind the first chunk, and then behind maxUnacked/2 chunks and at intervals, which tells a silent
// service from a dead one. The intervals behind the first chunk begin short and
// double, so that a slow service answers before it is taken for a dead one. A
// pong also acknowledges what was sent before its ping. It also answers the
// service's pings.
func (s *Stream) ping() {
	defer s.recovered("pinging")
	interval := s.config.pingEvery
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case payload := <-s.pongs:
			s.control(websocket.PongMessage, trace.KindPong, []byte(payload))
			continue
		case <-timer.C:
		case <-s.pingNow:
			interval = s.config.pingEvery / 8
		case <-s.ctx.Done():
			return
		}
		s.control(websocket.PingMessage, trace.KindPing, binary.BigEndian.AppendUint64(nil, s.nextPing()))
		timer.Reset(interval)
		interval = min(2*interval, s.config.pingEvery)
	}
}

// control sends a ping or a pong.
func (s *Stream) control(kind int, record trace.Kind, payload []byte) {
	s.tracer.put(trace.Record{Dir: trace.Outgoing, Kind: record, Size: len(payload)}) // a response may come before the write returns
	err := s.conn.WriteControl(kind, payload, s.writeDeadline())
	if err != nil && !isTimeout(err) { // else a chunk is being written, whose own deadline counts
		s.writeFailed(err)
	}
}
