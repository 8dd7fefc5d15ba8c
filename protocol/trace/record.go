// Package trace records what goes over the connection between a client and a
// service: the records, a bounded log, a lossless queue, their JSON form, and
// the redaction of keys and tokens.
package trace

import (
	"encoding/json"
	"math"
	"time"

	"hubbub/protocol"
)

// Bounds of a record.
const (
	MaxRawBytes  = 16 << 10 // bytes of Raw
	MaxTextRunes = 300      // characters of Text
)

// Tracer receives a record of everything that goes over the connection between a
// client and a service. Record is called from the goroutines that use the
// connection, also concurrently, and delays them while it runs.
//
// Records never contain API keys or tokens.
type Tracer interface {
	Record(Record)
}

// Kind is the kind of a Record, as outputs print it.
type Kind string

// The kinds of Record.
const (
	KindLookup    Kind = "lookup"    // the name of the service was resolved
	KindConnect   Kind = "connect"   // a TCP connection was opened
	KindTLS       Kind = "tls"       // its TLS handshake was completed
	KindRequest   Kind = "request"   // an HTTP request
	KindResponse  Kind = "answer"    // its response
	KindHandshake Kind = "handshake" // opening of a WebSocket: the request, and its response
	KindFailure   Kind = "failure"   // a request or handshake without a valid response
	KindChunk     Kind = "chunk"     // 100 ms of audio
	KindMessage   Kind = "message"   // a message of this side: end_of_stream
	KindEvent     Kind = "event"     // a message of the service
	KindError     Kind = "error"     // its message of type error, or one that cannot be parsed
	KindPing      Kind = "ping"
	KindPong      Kind = "pong"
	KindClose     Kind = "close" // a close frame
	KindEnd       Kind = "end"   // a stream ended, and how
)

// Direction is who sent something.
type Direction string

// The directions. A KindEnd has none, and neither have the steps of connecting.
const (
	Outgoing Direction = "out"
	Incoming Direction = "in"
)

// Record is one occurrence on the connection. Fields that do not apply
// to its kind are zero. All texts are cleaned for one line of a terminal.
type Record struct {
	// Number counts the records of a tracer, from 1. At is when it happened: when
	// a request, a message or a ping of this side began, when the write of a
	// chunk was completed, when anything else was completed. The tracer sets
	// both, in one order.
	Number int64
	At     time.Time
	// Stream counts the client's streams, from 1; 0 = none: HTTP.
	Stream int
	Dir    Direction
	Kind   Kind
	// Size is the payload in bytes.
	Size int
	// Took is how long it took: a request until its response, a ping until its
	// pong, a chunk or message until its write was completed.
	Took time.Duration

	// Chunk is the number of a chunk on the capture clock. Gap is the time
	// between the starts of this write and that of the chunk before it: 100 ms in
	// real time.
	Chunk int64
	Gap   time.Duration
	// Ahead is how far the audio is ahead of real time after the chunk. Dropped
	// is how many chunks were dropped between this one and the one before.
	// Waiting is how many chunks wait to be sent on the stream; negative = not known.
	Ahead   time.Duration
	Dropped int64
	Waiting int

	// Type is the field type of an event. Lag is the time from the sending of the
	// audio of its timestamp to its arrival; negative = not known.
	Type string
	Lag  time.Duration

	// Code is an HTTP status, or a close code (RFC 6455, 7.4); 0 = none.
	Code int
	// Text has details: method and address, the reason of a close, an error.
	Text string
	// Fault marks an error, which Text describes.
	Fault bool
	// Raw is a message, or the body of a response, as one line of valid JSON,
	// without secrets. A longer one than MaxRawBytes is omitted, and Cut is set.
	Raw json.RawMessage
	Cut bool

	// Socket is the state of the socket at the time, of chunks and pongs; nil = not known.
	Socket *SocketState
}

// SocketState is what the operating system reports about a TCP socket. Which
// fields it reports depends on the system: all of them on Linux.
type SocketState struct {
	// Unacked are the bytes that were written and are unacknowledged; Unsent are
	// those of them that have not been sent. Unread have arrived and were not
	// read.
	Unacked, Unsent, Unread int
	// RTT is TCP's smoothed round-trip time, RTTVar its mean deviation.
	RTT, RTTVar time.Duration
	// Retransmits counts retransmitted segments since the connection began; Lost
	// are the segments that TCP considers lost now.
	Retransmits, Lost int
	// Window is the congestion window: how many segments may be unacknowledged.
	Window int
}

// recordJSON is a Record as one line of JSON, the contract of --output wire.
type recordJSON struct {
	Number  int64           `json:"n"`
	At      string          `json:"at"`
	Stream  int             `json:"stream,omitempty"`
	Dir     Direction       `json:"dir,omitempty"`
	Kind    Kind            `json:"kind"`
	Type    string          `json:"type,omitempty"`
	Size    *int            `json:"bytes,omitempty"`
	Took    millis          `json:"took_ms,omitempty"`
	Chunk   *int64          `json:"chunk,omitempty"`
	Gap     millis          `json:"gap_ms,omitempty"`
	Ahead   *millis         `json:"ahead_ms,omitempty"`
	Dropped int64           `json:"dropped,omitempty"`
	Lag     *millis         `json:"lag_ms,omitempty"`
	Code    int             `json:"code,omitempty"`
	Meaning string          `json:"meaning,omitempty"`
	Fault   bool            `json:"fault,omitempty"`
	Text    string          `json:"text,omitempty"`
	Raw     json.RawMessage `json:"message,omitempty"`
	Cut     bool            `json:"cut,omitempty"`
	Queue   *int            `json:"queue,omitempty"`
	Socket  *socketJSON     `json:"socket,omitempty"`
}

type socketJSON struct {
	Unacked     int    `json:"unacked_bytes"`
	Unsent      int    `json:"unsent_bytes"`
	Unread      int    `json:"unread_bytes"`
	RTT         millis `json:"rtt_ms"`
	RTTVar      millis `json:"rttvar_ms"`
	Retransmits int    `json:"retransmits"`
	Lost        int    `json:"lost"`
	Window      int    `json:"window"`
}

// millis is a duration whose JSON is in milliseconds, to the microsecond.
type millis time.Duration

func (m millis) MarshalJSON() ([]byte, error) {
	return json.Marshal(math.Round(float64(m)/float64(time.Microsecond)) / 1000)
}

// MarshalJSON is the record as one line.
func (r Record) MarshalJSON() ([]byte, error) {
	j := recordJSON{
		Number: r.Number, At: r.At.UTC().Format("2006-01-02T15:04:05.000000Z"), Stream: r.Stream,
		Dir: r.Dir, Kind: r.Kind, Type: r.Type, Took: millis(r.Took), Gap: millis(r.Gap), Dropped: r.Dropped,
		Code: r.Code, Fault: r.Fault, Text: r.Text, Raw: r.Raw, Cut: r.Cut,
	}
	if r.Dir != "" {
		j.Size = &r.Size
	}
	switch r.Kind {
	case KindChunk:
		j.Chunk, j.Ahead = &r.Chunk, new(millis(r.Ahead))
		if r.Waiting >= 0 {
			j.Queue = &r.Waiting
		}
	case KindEvent:
		if (r.Type == protocol.TypeSpeakerStart || r.Type == protocol.TypeSpeakerEnd) && r.Lag >= 0 {
			j.Lag = new(millis(r.Lag))
		}
	case KindClose, KindEnd:
		if r.Code != 0 {
			j.Meaning = protocol.CodeMeaning(r.Code)
		}
	}
	if s := r.Socket; s != nil {
		j.Socket = &socketJSON{s.Unacked, s.Unsent, s.Unread, millis(s.RTT), millis(s.RTTVar), s.Retransmits, s.Lost, s.Window}
	}
	return protocol.MarshalLine(j)
}

// Line is the record as one line of JSON, without a line break.
func (r Record) Line() string {
	line, _ := r.MarshalJSON() // Raw is valid JSON, and nothing else can fail
	return string(line)
}
