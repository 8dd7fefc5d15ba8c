// Package protocol is what a client and a server of the diarization service
// agree on: stream messages, HTTP bodies and their validation. It also holds
// the client itself (HTTP and WebSocket), the timeline of turns that a stream's
// events build, and RTTM, the format in which turns are written down.
package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	// Raw is the message as it was received or is to be sent. It is always
	// one line of valid JSON: line breaks between tokens become spaces, and
	// what is no JSON at all is kept as a JSON string.
	Raw json.RawMessage
	// Err says why a message could not be read, in one line; "" for one that
	// could. Only Type and Raw may then be relied on.
	Err string
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
// with a "type"; the Event that comes with such an error still holds Raw, and
// the error's text as Err. An unknown type is no error.
func ParseEvent(raw []byte) (Event, error) {
	e := Event{Raw: oneLine(raw)}
	err := e.fill(raw)
	if err != nil {
		e.Err = Clean(err.Error(), 200)
	}
	return e, err
}

func (e *Event) fill(raw []byte) error {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return fmt.Errorf("message is not the JSON of an event: %w", err)
	}
	e.Type = head.Type
	switch head.Type {
	case "":
		return errors.New("message has no type")
	case TypeSpeakerStart, TypeSpeakerEnd, TypeError:
	default: // its other fields are none of ours, whatever they hold
		return nil
	}
	var w wireEvent
	if err := json.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("%s is not as specified: %w", head.Type, err)
	}
	if head.Type == TypeError {
		if w.Message == nil {
			return errors.New("error without a message")
		}
		e.Message = *w.Message
		return nil
	}
	if w.Data == nil || w.Data.Timestamp == nil || w.Data.Speaker == nil {
		return fmt.Errorf("%s without data.timestamp and data.speaker", head.Type)
	}
	if *w.Data.Timestamp < 0 {
		return fmt.Errorf("%s with a negative timestamp", head.Type)
	}
	e.Timestamp, e.Speaker = *w.Data.Timestamp, *w.Data.Speaker
	return nil
}

// oneLine is a copy of raw that is one line of valid JSON.
func oneLine(raw []byte) json.RawMessage {
	raw = bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("\uFFFD"))
	if !json.Valid(raw) {
		text, err := json.Marshal(string(raw))
		if err != nil { // strings always marshal
			return json.RawMessage(`""`)
		}
		return text
	}
	for i, c := range raw { // in valid JSON a bare line break is only ever between tokens
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
	return raw
}
