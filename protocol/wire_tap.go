package protocol

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	maxWireRaw  = 16 << 10 // bytes of one message that a record keeps
	maxWireText = 300      // characters of a record's text
	// socketEvery is how often a socket is asked how it is, at most: in real
	// time with every chunk.
	socketEvery = ChunkDuration / 2
	// sentPings is of how many pings the time of sending is remembered: a pong may
	// come after the next ping.
	sentPings = 64
	// sentTimes is of how many chunks the time of sending is remembered, for
	// the lag of events: ten minutes.
	sentTimes = 6000
)

// tapped is a client's tap with what keeps secrets from it. A nil one, of a
// client that nobody looks at, does nothing.
type tapped struct {
	tap    Tap
	secret *redactor
}

func (t *tapped) record(r WireRecord) {
	if t == nil {
		return
	}
	r.Text = Clean(t.secret.text(r.Text), maxWireText)
	if len(r.Raw) > 0 {
		if r.Raw = t.secret.json(r.Raw); len(r.Raw) > maxWireRaw {
			r.Raw, r.Cut = nil, true
		}
	}
	t.tap.Record(r)
}

// streamTap records what one stream does. A nil one does nothing.
type streamTap struct {
	*tapped
	stream int
	socket syscall.RawConn // nil = the system is not asked

	mu     sync.Mutex
	begun  time.Time // when the newest chunk began to be sent
	sent   []time.Time
	chunks int64 // that were sent
	next   int64 // number of the chunk that would follow without a gap
	asked  time.Time
	pings  [sentPings]time.Time // when the newest were sent, by their numbers
}

// tapStream begins to record a stream that was opened, before its goroutines
// are started.
func (s *Stream) tapStream(t *tapped, number int) {
	if t == nil {
		return
	}
	w := &streamTap{tapped: t, stream: number, socket: rawConn(s.conn.NetConn())}
	s.tap = w
	ping := s.conn.PingHandler()
	s.conn.SetPingHandler(func(payload string) error {
		w.put(WireRecord{Dir: Incoming, Kind: WirePing, Size: len(payload)})
		err := ping(payload)
		w.put(WireRecord{Dir: Outgoing, Kind: WirePong, Size: len(payload)})
		return err
	})
	shut := s.conn.CloseHandler()
	s.conn.SetCloseHandler(func(code int, text string) error {
		w.put(WireRecord{Dir: Incoming, Kind: WireClose, Code: code, Text: text, Size: len(text)})
		err := shut(code, text) // answers with the same code
		if err == nil {
			w.put(WireRecord{Dir: Outgoing, Kind: WireClose, Code: code})
		}
		return err
	})
}

// rawConn is the socket below a connection, TLS or not.
func rawConn(conn net.Conn) syscall.RawConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

func (w *streamTap) put(r WireRecord) {
	if w == nil {
		return
	}
	r.Stream = w.stream
	w.record(r)
}

// socketNow is how the socket is, nil where it was asked within socketEvery. The
// result is not changed afterwards. w.mu is held.
func (w *streamTap) socketNow(now time.Time) *SocketState {
	if w.socket == nil || now.Sub(w.asked) < socketEvery && !w.asked.IsZero() {
		return nil
	}
	w.asked = now
	if s, ok := socketState(w.socket); ok {
		return &s
	}
	return nil
}

// sending notes that a chunk is about to be written: time spent waiting for the
// service is its lag.
func (w *streamTap) sending(begun time.Time) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) < sentTimes {
		w.sent = append(w.sent, begun)
	} else {
		w.sent[w.chunks%sentTimes] = begun
	}
	w.chunks++
}

// chunk records a chunk whose write began and ended at these times.
func (w *streamTap) chunk(seq int64, begun, done time.Time, ahead time.Duration, err error) {
	if w == nil {
		return
	}
	r := WireRecord{Stream: w.stream, Dir: Outgoing, Kind: WireChunk, Size: ChunkBytes, Chunk: seq, Took: done.Sub(begun), Ahead: ahead}
	w.mu.Lock()
	if !w.begun.IsZero() {
		r.Gap, r.Dropped = begun.Sub(w.begun), max(seq-w.next, 0)
	}
	w.begun, w.next = begun, seq+1
	r.Socket = w.socketNow(done)
	w.mu.Unlock()
	if err != nil {
		r.Fault, r.Text = true, err.Error()
		w.record(r)
		return
	}
	w.tap.Record(r) // nothing in it needs to be kept secret
}

// lag is how long before now the audio up to a timestamp of the stream's clock
// had been sent: that of the chunk with its last sample.
func (w *streamTap) lag(timestamp float64, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chunks == 0 {
		return -1
	}
	// A thousandth of a chunk is below the resolution of timestamps.
	at := math.Ceil(timestamp/ChunkDuration.Seconds()-1e-3) - 1
	if at < float64(w.chunks-int64(len(w.sent))) && at >= 0 { // forgotten
		return -1
	}
	chunk := min(max(int64(min(at, float64(w.chunks))), 0), w.chunks-1)
	return max(now.Sub(w.sent[chunk%sentTimes]), 0)
}

// event records a message of the service.
func (w *streamTap) event(e Event, size int) {
	if w == nil {
		return
	}
	r := WireRecord{Dir: Incoming, Kind: WireEvent, Size: size, Type: Clean(w.secret.text(e.Type), 80), Raw: e.Raw, Lag: -1, Text: e.Message}
	switch {
	case e.Err != "":
		r.Kind, r.Fault, r.Text = WireError, true, e.Err
	case e.Type == TypeError:
		r.Kind, r.Fault = WireError, true
	case e.Type == TypeSpeakerStart || e.Type == TypeSpeakerEnd:
		r.Text = fmt.Sprintf("%s at %.3f s", Label(e.Speaker), e.Timestamp)
		r.Lag = w.lag(e.Timestamp, e.Received)
	case e.Type == TypeStreamState:
		if s, ok := ParseStreamState(e); ok {
			r.Text = fmt.Sprintf("%s at %.3f s", Clean(s.Status, 20), s.Timestamp)
		}
	}
	w.put(r)
}

// message records a text message of this side that is about to be written: the
// answer may come before the write returns.
func (w *streamTap) message(text string) {
	w.put(WireRecord{Dir: Outgoing, Kind: WireMessage, Size: len(text), Type: TypeEndOfStream, Raw: json.RawMessage(text)})
}

// pinged records a ping of this side, by its number.
func (w *streamTap) pinged(number uint64, now time.Time) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.pings[number%sentPings] = now
	w.mu.Unlock()
	w.put(WireRecord{Dir: Outgoing, Kind: WirePing, Size: 8})
}

// ponged records a pong, which may be the answer to an older ping.
func (w *streamTap) ponged(payload string, now time.Time) {
	if w == nil {
		return
	}
	r := WireRecord{Dir: Incoming, Kind: WirePong, Size: len(payload)}
	w.mu.Lock()
	if len(payload) == 8 {
		at := &w.pings[binary.BigEndian.Uint64([]byte(payload))%sentPings]
		if !at.IsZero() {
			r.Took, *at = max(now.Sub(*at), time.Nanosecond), time.Time{}
		}
	}
	r.Socket = w.socketNow(now)
	w.mu.Unlock()
	w.put(r)
}

// ended records how the stream ended.
func (w *streamTap) ended(info CloseInfo) {
	if w == nil {
		return
	}
	r := WireRecord{Kind: WireEnd, Code: info.Code, Type: info.Reason.String()}
	if info.Err != nil {
		r.Fault, r.Text = true, info.Err.Error()
		if hint := hintOf(info.Err); hint != "" {
			r.Text += ": " + hint
		}
	}
	w.put(r)
}

// Socket is how the stream's TCP socket is, where the system tells and while it
// is open.
func (s *Stream) Socket() (SocketState, bool) {
	raw := rawConn(s.conn.NetConn())
	if raw == nil {
		return SocketState{}, false
	}
	return socketState(raw)
}
