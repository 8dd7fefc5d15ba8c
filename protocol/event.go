// Package protocol is what a client and a server of the diarization service
// agree on: stream messages, HTTP bodies and their validation. It also holds
// the client itself (HTTP and WebSocket), the timeline of turns that a stream's
// events build, and RTTM, the format in which turns are written down.
package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// The types of stream messages, as their field "type" spells them.
const (
	TypeSpeakerStart = "diarization_speaker_start" // server to client
	TypeSpeakerEnd   = "diarization_speaker_end"   // server to client
	TypeError        = "error"                     // server to client
	TypeEndOfStream  = "end_of_stream"             // client to server
)

// Event is one message of a server on a stream.
type Event struct {
	// Type is the message's field "type". A type that this package does not
	// know is kept, with Raw, and nothing else is filled in.
	Type string
	// Timestamp is the position in the stream, in seconds from its start, of
	// a speaker's start or end.
	Timestamp float64
	// Speaker is the label of a start or end, as the server spelled it.
	Speaker string
	// Message is the text of an error.
	Message string
	// Raw is the message as it was received or is to be sent: one JSON
	// object, without line breaks at its end.
	Raw json.RawMessage
	// Received is when the message arrived; zero for one that did not.
	Received time.Time
}

// wireEvent is the JSON form of an Event.
type wireEvent struct {
	Type    string    `json:"type"`
	Data    *wireData `json:"data,omitempty"`
	Message *string   `json:"message,omitempty"`
}

type wireData struct {
	Timestamp *float64 `json:"timestamp"`
	Speaker   *string  `json:"speaker"`
}

// Round1ms rounds a stream position in seconds to whole milliseconds, the
// resolution of the service.
func Round1ms(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

// NewSpeakerEvent builds a start or an end at a stream position in seconds.
func NewSpeakerEvent(typ string, seconds float64, speaker string) Event {
	at := Round1ms(seconds)
	return seal(Event{Type: typ, Timestamp: at, Speaker: speaker},
		wireEvent{Type: typ, Data: &wireData{Timestamp: &at, Speaker: &speaker}})
}

// NewErrorEvent builds an error message.
func NewErrorEvent(message string) Event {
	return seal(Event{Type: TypeError, Message: message},
		wireEvent{Type: TypeError, Message: &message})
}

func seal(e Event, w wireEvent) Event {
	raw, err := json.Marshal(w)
	if err != nil { // strings and finite numbers always marshal
		panic(fmt.Sprintf("protocol: %s: %v", w.Type, err))
	}
	e.Raw = raw
	return e
}

// ParseEvent reads one message of a server. A message of a known type without
// its required fields is an error, and so is anything that is no JSON object
// with a "type"; the Event that comes with such an error still holds Raw. An
// unknown type is no error.
func ParseEvent(raw []byte) (Event, error) {
	e := Event{Raw: append(json.RawMessage(nil), raw...)}
	var w wireEvent
	if err := json.Unmarshal(raw, &w); err != nil {
		return e, fmt.Errorf("message is not the JSON of an event: %w", err)
	}
	e.Type = w.Type
	switch w.Type {
	case "":
		return e, errors.New("message has no type")
	case TypeSpeakerStart, TypeSpeakerEnd:
		if w.Data == nil || w.Data.Timestamp == nil || w.Data.Speaker == nil {
			return e, fmt.Errorf("%s without data.timestamp and data.speaker", w.Type)
		}
		if *w.Data.Timestamp < 0 {
			return e, fmt.Errorf("%s with a negative timestamp", w.Type)
		}
		e.Timestamp, e.Speaker = *w.Data.Timestamp, *w.Data.Speaker
	case TypeError:
		if w.Message == nil {
			return e, errors.New("error without a message")
		}
		e.Message = *w.Message
	}
	return e, nil
}
