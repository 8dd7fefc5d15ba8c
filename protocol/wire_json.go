package protocol

import (
	"bytes"
	"encoding/json"
	"math"
	"time"
)

// wireJSON is the form of a WireRecord as one line of JSON, the contract of
// --output wire.
type wireJSON struct {
	Number  int64           `json:"n"`
	At      string          `json:"at"`
	Stream  int             `json:"stream,omitempty"`
	Dir     Direction       `json:"dir,omitempty"`
	Kind    WireKind        `json:"kind"`
	Type    string          `json:"type,omitempty"`
	Size    *int            `json:"bytes,omitempty"`
	Took    *float64        `json:"took_ms,omitempty"`
	Chunk   *int64          `json:"chunk,omitempty"`
	Gap     *float64        `json:"gap_ms,omitempty"`
	Ahead   *float64        `json:"ahead_ms,omitempty"`
	Dropped int64           `json:"dropped,omitempty"`
	Lag     *float64        `json:"lag_ms,omitempty"`
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
	Unacked     int     `json:"unacked_bytes"`
	Unsent      int     `json:"unsent_bytes"`
	Unread      int     `json:"unread_bytes"`
	RTT         float64 `json:"rtt_ms"`
	RTTVar      float64 `json:"rttvar_ms"`
	Retransmits int     `json:"retransmits"`
	Lost        int     `json:"lost"`
	Window      int     `json:"window"`
}

// wireMillis is a time in milliseconds, to the microsecond.
func wireMillis(d time.Duration) *float64 {
	ms := math.Round(float64(d)/float64(time.Microsecond)) / 1000
	return &ms
}

// MarshalJSON is the record as one line.
func (r WireRecord) MarshalJSON() ([]byte, error) {
	j := wireJSON{
		Number: r.Number, At: r.At.UTC().Format("2006-01-02T15:04:05.000000Z"), Stream: r.Stream,
		Dir: r.Dir, Kind: r.Kind, Type: r.Type, Dropped: r.Dropped,
		Code: r.Code, Fault: r.Fault, Text: r.Text, Raw: r.Raw, Cut: r.Cut,
	}
	if r.Dir != "" {
		j.Size = &r.Size
	}
	if r.Took > 0 {
		j.Took = wireMillis(r.Took)
	}
	switch r.Kind {
	case WireChunk:
		j.Chunk, j.Ahead = &r.Chunk, wireMillis(r.Ahead)
		if r.Gap > 0 {
			j.Gap = wireMillis(r.Gap)
		}
		if r.Queue >= 0 {
			j.Queue = &r.Queue
		}
	case WireEvent:
		if (r.Type == TypeSpeakerStart || r.Type == TypeSpeakerEnd) && r.Lag >= 0 {
			j.Lag = wireMillis(r.Lag)
		}
	case WireClose:
		j.Meaning = CodeMeaning(r.Code)
	case WireEnd:
		if r.Code != 0 {
			j.Meaning = CodeMeaning(r.Code)
		}
	}
	if s := r.Socket; s != nil {
		j.Socket = &socketJSON{s.Unacked, s.Unsent, s.Unread, *wireMillis(s.RTT), *wireMillis(s.RTTVar), s.Retransmits, s.Lost, s.Window}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(j); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// Line is the record as one line of JSON, without a line break.
func (r WireRecord) Line() string {
	line, err := r.MarshalJSON()
	if err != nil { // nothing in it can fail, but a message that is no JSON
		r.Raw, r.Cut = nil, true
		line, _ = r.MarshalJSON()
	}
	return string(line)
}
