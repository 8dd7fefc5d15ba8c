package protocol

import (
	"encoding/json"
	"time"
)

// A Tap is told of everything that goes over the wire between a Client and its
// service, for people who look for a fault there. Record is called from the
// goroutines that use the wire, also at once, and must not wait longer than
// the wire may.
//
// No API key and no token is in what it gets.
type Tap interface {
	Record(WireRecord)
}

// WireKind is what a WireRecord is about. Its value is what outputs print.
type WireKind string

// The kinds of WireRecord.
const (
	WireLookUp    WireKind = "lookup"    // the name of the service was looked up
	WireConnect   WireKind = "connect"   // a TCP connection was opened
	WireTLS       WireKind = "tls"       // its TLS handshake was done
	WireRequest   WireKind = "request"   // an HTTP request
	WireAnswer    WireKind = "answer"    // its answer
	WireHandshake WireKind = "handshake" // opening of a WebSocket: the request, and its answer
	WireFailure   WireKind = "failure"   // a request or handshake without an answer
	WireChunk     WireKind = "chunk"     // 100 ms of audio
	WireMessage   WireKind = "message"   // a message of this side: end_of_stream
	WireEvent     WireKind = "event"     // a message of the service
	WireError     WireKind = "error"     // its message of type error, or one that cannot be read
	WirePing      WireKind = "ping"
	WirePong      WireKind = "pong"
	WireClose     WireKind = "close" // a close frame
	WireEnd       WireKind = "end"   // a stream is over: how it ended
)

// Direction is who sent something.
type Direction string

// The directions. A WireEnd has none, and neither has what this machine did.
const (
	Outgoing Direction = "out"
	Incoming Direction = "in"
)

// WireRecord is one thing that happened on the wire. Fields that do not
// concern its kind are zero. All texts are fit for one line of a terminal.
type WireRecord struct {
	// Number counts the records of a tap, from 1. At is when it happened: when
	// a request, a message or a ping of this side began, when the system had
	// taken a chunk, when all else was over. Both are given by the tap, in one
	// order.
	Number int64
	At     time.Time
	// Stream counts the client's streams, from 1; 0 = none: HTTP.
	Stream int
	Dir    Direction
	Kind   WireKind
	// Size is the payload in bytes.
	Size int
	// Took is how long it took: a request until its answer, a ping until its
	// pong, a chunk or message until the system had taken it.
	Took time.Duration

	// Chunk is the number of a chunk on the capture's clock. Gap is the time
	// since the chunk before it began to be sent: 100 ms in real time.
	Chunk int64
	Gap   time.Duration
	// Ahead is that of StreamStats after the chunk. Dropped is how many chunks
	// were given up between this one and the one before. Queue is how many wait
	// to be sent, negative = not known; the tap asks.
	Ahead   time.Duration
	Dropped int64
	Queue   int

	// Type is the field of that name of an event. Lag is how long after the
	// audio of its timestamp was sent it came; negative = not known.
	Type string
	Lag  time.Duration

	// Code is an HTTP status, or a close code (RFC 6455, 7.4); 0 = none.
	Code int
	// Text says more: method and address, the reason of a close, an error.
	Text string
	// Fault says that it should not have happened: Text tells why.
	Fault bool
	// Raw is a message, or the body of an answer, as one line of valid JSON,
	// without secrets. What was longer than it may be is left out, and Cut
	// says so.
	Raw json.RawMessage
	Cut bool

	// Socket is how the socket was at the time; nil = not known, or asked less
	// than 50 ms before.
	Socket *SocketState
}

// SocketState is what the system tells of a TCP socket. Which fields it tells
// depends on the system: all of them on Linux.
type SocketState struct {
	// Unacked is what was written and not yet acknowledged by the other side,
	// in bytes of TCP; Unsent is the part of it that has not left this
	// machine. Unread has arrived and waits to be read.
	Unacked, Unsent, Unread int
	// RTT is TCP's own smoothed round trip, RTTVar its mean deviation; MinRTT
	// is the shortest there was.
	RTT, RTTVar, MinRTT time.Duration
	// Retransmits counts segments that were sent again since the connection
	// began; Lost are those that are thought lost now.
	Retransmits, Lost int
	// Window is how many segments may be on the way at once.
	Window int
}
