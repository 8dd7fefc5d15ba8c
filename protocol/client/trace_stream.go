package client

import (
	"fmt"
	"net"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/trace"
)

// tracer is a client's trace.Tracer with the redactor in front of it.
type tracer struct {
	sink     trace.Tracer
	redactor *trace.Redactor
}

func (t *tracer) record(r trace.Record) {
	r.Text = protocol.Clean(t.redactor.Text(r.Text), trace.MaxTextRunes)
	if len(r.Raw) > 0 {
		if r.Raw = t.redactor.JSON(r.Raw); len(r.Raw) > trace.MaxRawBytes {
			r.Raw, r.Cut = nil, true
		}
	}
	t.sink.Record(r)
}

// streamTracer records what one stream does. A nil one does nothing.
type streamTracer struct {
	*tracer
	stream int
	socket net.Conn
}

// trace begins to trace a stream that was opened, before its goroutines are
// started.
func (s *Stream) trace(t *tracer, number int) {
	if t == nil {
		return
	}
	st := &streamTracer{tracer: t, stream: number, socket: s.tcp()}
	s.tracer = st
	shut := s.conn.CloseHandler()
	s.conn.SetCloseHandler(func(code int, text string) error {
		st.put(trace.Record{Dir: trace.Incoming, Kind: trace.KindClose, Code: code, Text: text, Size: len(text)})
		err := shut(code, text) // responds with the same code
		if err == nil {
			st.put(trace.Record{Dir: trace.Outgoing, Kind: trace.KindClose, Code: code})
		}
		return err
	})
}

func (t *streamTracer) put(r trace.Record) {
	if t == nil {
		return
	}
	r.Stream = t.stream
	t.record(r)
}

// chunk records a chunk whose write began and ended at these times.
func (t *streamTracer) chunk(r trace.Record, begun, done time.Time, err error) {
	if t == nil {
		return
	}
	r.Stream, r.Took, r.Socket = t.stream, done.Sub(begun), trace.QuerySocket(t.socket)
	if err != nil {
		r.Fault, r.Text = true, err.Error()
		t.record(r)
		return
	}
	t.sink.Record(r) // it contains no secret
}

// event records a message of the service. session is its time on the capture
// clock, in seconds: after a resume, or after dropped audio, the stream's clock
// is behind it.
func (t *streamTracer) event(e protocol.Event, size int, session float64) {
	if t == nil {
		return
	}
	r := trace.Record{Dir: trace.Incoming, Kind: trace.KindEvent, Size: size, Type: protocol.Clean(t.redactor.Text(e.Type), 80), Raw: e.Raw, Lag: -1, Text: e.Message}
	switch {
	case e.Err != "":
		r.Kind, r.Fault, r.Text = trace.KindError, true, e.Err
	case e.Type == protocol.TypeError:
		r.Kind, r.Fault = trace.KindError, true
	case e.IsTurn():
		r.Text = fmt.Sprintf("%s at %.3f s", protocol.Label(e.Speaker), e.Timestamp)
		if session != e.Timestamp {
			r.Text += fmt.Sprintf(" (session %.3f s)", session)
		}
		r.Lag = e.Lag
		if r.Fault = e.Fault != ""; r.Fault {
			r.Text += ": " + e.Fault
		}
	case e.State != nil:
		r.Text = fmt.Sprintf("%s at %.3f s", protocol.Clean(e.State.Status, 20), e.State.Timestamp)
	}
	t.put(r)
}

// ponged records a pong and the round-trip time; 0 = not known.
func (t *streamTracer) ponged(size int, took time.Duration) {
	if t == nil {
		return
	}
	t.put(trace.Record{Dir: trace.Incoming, Kind: trace.KindPong, Size: size, Took: took, Socket: trace.QuerySocket(t.socket)})
}

// ended records how the stream ended.
func (t *streamTracer) ended(info CloseInfo) {
	if t == nil {
		return
	}
	r := trace.Record{Kind: trace.KindEnd, Code: info.Code, Type: info.Reason.String()}
	if info.Err != nil {
		r.Fault, r.Text = true, info.Err.Error()
		if next := hint.Of(info.Err); next != "" {
			r.Text += ": " + next
		}
	}
	t.put(r)
}

// Socket is the state of the stream's TCP socket; nil when the system does not
// report it or the socket is closed.
func (s *Stream) Socket() *trace.SocketState { return trace.QuerySocket(s.tcp()) }
