// Package protocol is the vocabulary that clients and servers of the
// diarization service share: stream messages, HTTP bodies and their validation,
// audio frames, labels, the timeline of turns that a stream's events build,
// annotations, and RTTM, the format in which turns are written. It also has small functions
// that packages on both sides need, such as Clean, MarshalLine and Sleep.
package protocol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
)

// The types of stream messages, as their field "type" spells them.
const (
	TypeSpeakerStart = "diarization_speaker_start" // server to client
	TypeSpeakerEnd   = "diarization_speaker_end"   // server to client
	TypeText         = "text"                      // server to client, if it asked for words
	TypeError        = "error"                     // server to client
	TypeEndOfStream  = "end_of_stream"             // client to server
)

// Event is one message of a server on a stream.
type Event struct {
	// Type is the field "type" of the message. Of a type that this package does
	// not know, only Type and Raw are set.
	Type string
	// Timestamp is the time of a start or end, in seconds on the stream's clock.
	Timestamp float64
	// Speaker is the label of a start or end, as the server spelled it.
	Speaker string
	// Match is the label of the voiceprint that the speaker of a start matches;
	// "" = none, or not decided yet.
	Match string
	// Unmatched says that the speaker of a start matched a voiceprint before and
	// no longer does. Match is "".
	Unmatched bool
	// Transcript is the finished turn of a text message, with its text; that is "" when
	// nothing was recognised.
	Transcript Turn
	// Message is the text of an error.
	Message string
	// State is the state of a stream_state message; nil = it is invalid.
	State *StreamState
	// Raw is the message as it was received or is to be sent, as one line of
	// valid JSON: line breaks between tokens become spaces, and what is not JSON
	// becomes a JSON string.
	Raw json.RawMessage
	// Err says in one line why the message could not be parsed; "" = it could.
	// With an error, only Type and Raw are valid.
	Err string
	// Received is when the message arrived; zero for one that was built here.
	Received time.Time
	// Lag is the time from the sending of the audio of a received start or end to its
	// arrival; negative when no audio was sent.
	Lag time.Duration
	// Fault says what is wrong with a received start or end, other than that it could not be parsed; "" = nothing.
	Fault string
}

// IsTurn reports whether the event is the start or the end of a turn, and could be
// parsed.
func (e Event) IsTurn() bool {
	return e.Err == "" && (e.Type == TypeSpeakerStart || e.Type == TypeSpeakerEnd)
}

// withData is the JSON form of a message with data.
type withData[T any] struct {
	Type string `json:"type"`
	Data *T     `json:"data"`
}

// speakerData is the data of a start or an end.
type speakerData struct {
	Timestamp *float64        `json:"timestamp"`
	Speaker   *string         `json:"speaker"`
	Match     json.RawMessage `json:"match,omitempty"` // a string; null = no longer
}

// NewSpeakerEvent builds a start or an end at a time in seconds.
func NewSpeakerEvent(typ string, seconds float64, speaker string) Event {
	return Event{Type: typ}.Moved(seconds, speaker)
}

// NewMatchEvent builds a start, at a time in seconds, of a speaker who matches a
// voiceprint; "" = of one who no longer does.
func NewMatchEvent(seconds float64, speaker, match string) Event {
	return Event{Type: TypeSpeakerStart, Match: match, Unmatched: match == ""}.Moved(seconds, speaker)
}

// Moved is a start or an end at another time in seconds, or with another label.
func (e Event) Moved(seconds float64, speaker string) Event {
	e.Timestamp, e.Speaker = Round1ms(seconds), speaker
	data := &speakerData{Timestamp: &e.Timestamp, Speaker: &e.Speaker}
	switch {
	case e.Unmatched:
		data.Match = json.RawMessage("null")
	case e.Match != "":
		data.Match, _ = json.Marshal(e.Match) // a string always marshals
	}
	return withRaw(e, withData[speakerData]{e.Type, data})
}

// maxTranscript bounds the transcript of a turn, in characters.
const maxTranscript = 64 << 10

// textData is the data of a text.
type textData struct {
	Speaker *string  `json:"speaker"`
	Start   *float64 `json:"start"`
	End     *float64 `json:"end"`
	Text    *string  `json:"text"`
}

// NewTextEvent builds the message with the transcript of a finished turn.
func NewTextEvent(t Turn) Event {
	t.Start, t.End, t.Text = Round1ms(t.Start), Round1ms(t.End), Clean(t.Text, maxTranscript)
	return withRaw(Event{Type: TypeText, Transcript: t}, withData[textData]{TypeText, &textData{&t.Speaker, &t.Start, &t.End, &t.Text}})
}

func (e *Event) fillText(raw []byte) error {
	var w withData[textData]
	if err := e.decode(raw, &w); err != nil {
		return err
	}
	d := w.Data
	if d == nil || d.Speaker == nil || d.Start == nil || d.End == nil || d.Text == nil {
		return errors.New("text without data.speaker, data.start, data.end and data.text")
	}
	if !(*d.Start >= 0 && *d.End > *d.Start && *d.End <= MaxTimestamp) {
		return errors.New("text of a turn with invalid times")
	}
	e.Transcript = Turn{Speaker: Label(*d.Speaker), Start: Round1ms(*d.Start), End: Round1ms(*d.End), Text: Clean(*d.Text, maxTranscript)}
	return nil
}

// errorJSON is the JSON form of an error.
type errorJSON struct {
	Type    string  `json:"type"`
	Message *string `json:"message"`
}

// NewErrorEvent builds an error message.
func NewErrorEvent(message string) Event {
	return withRaw(Event{Type: TypeError, Message: message}, errorJSON{TypeError, &message})
}

// withRaw is an event with its JSON form.
func withRaw(e Event, form any) Event {
	raw, err := json.Marshal(form)
	if err != nil { // strings and finite numbers always marshal
		panic(fmt.Sprintf("protocol: %s: %v", e.Type, err))
	}
	e.Raw = raw
	return e
}

// ParseEvent parses one message of a server. It returns an error for a message of
// a known type without its required fields, and for anything but a JSON object
// with a "type". The Event then has Raw, and the text of the error as Err. An
// unknown type is not an error.
func ParseEvent(raw []byte) (Event, error) {
	e := Event{Raw: OneLine(raw)}
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
		return fmt.Errorf("message is not the JSON of an event: %w", WrongType(err))
	}
	e.Type = head.Type
	switch head.Type {
	case "":
		return errors.New("message has no type")
	case TypeSpeakerStart, TypeSpeakerEnd:
		return e.fillSpeaker(raw)
	case TypeError:
		return e.fillError(raw)
	case TypeText:
		return e.fillText(raw)
	case TypeStreamState:
		e.fillState(raw)
	}
	return nil // the other fields of an unknown type are not known
}

// decode parses the fields of the message's type; others may be of any kind.
func (e *Event) decode(raw []byte, form any) error {
	if err := json.Unmarshal(raw, form); err != nil {
		return fmt.Errorf("%s is not as specified: %w", e.Type, WrongType(err))
	}
	return nil
}

func (e *Event) fillSpeaker(raw []byte) error {
	var w withData[speakerData]
	if err := e.decode(raw, &w); err != nil {
		return err
	}
	if w.Data == nil || w.Data.Timestamp == nil || w.Data.Speaker == nil {
		return fmt.Errorf("%s without data.timestamp and data.speaker", e.Type)
	}
	if at := *w.Data.Timestamp; at < 0 || at > MaxTimestamp {
		return fmt.Errorf("%s with the impossible timestamp %g", e.Type, at)
	}
	e.Timestamp, e.Speaker = *w.Data.Timestamp, *w.Data.Speaker
	return e.fillMatch(w.Data.Match)
}

func (e *Event) fillError(raw []byte) error {
	var w errorJSON
	if err := e.decode(raw, &w); err != nil {
		return err
	}
	if w.Message == nil {
		return errors.New("error without a message")
	}
	e.Message = *w.Message
	return nil
}

// WrongType names the field of a value of the wrong type, in the terms of JSON instead of Go's.
func WrongType(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.Field == "":
		return fmt.Errorf("unexpected %s", wrong.Value)
	}
	return fmt.Errorf("unexpected %s in %s", wrong.Value, wrong.Field)
}

func (e *Event) fillMatch(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var match string // null leaves it ""
	if err := json.Unmarshal(raw, &match); err != nil {
		return fmt.Errorf("%s with a match that is not a label: %w", e.Type, WrongType(err))
	}
	e.Match = Clean(match, MaxVoiceprintLabel)
	e.Unmatched = e.Match == "" && e.Type == TypeSpeakerStart
	return nil
}

// EndOfStreamMessage is the one text message that a client may send.
const EndOfStreamMessage = `{"type":"end_of_stream"}`

//lint:ignore ST1005 a server sends this text as it is
var errClientMessage = errors.New(`Text message is not a JSON object with the type "end_of_stream"; audio goes in binary frames`)

// ParseClientMessage checks a text message of a client. The only valid one is an
// object whose "type" is "end_of_stream". A server can send the text of the error
// to the client.
func ParseClientMessage(text []byte) error {
	if InputField(text, "type") != TypeEndOfStream {
		return errClientMessage
	}
	return nil
}

// TypeStreamState is the type of a message to watchers about the state of the
// stream. The sender of a stream does not receive it.
const TypeStreamState = "stream_state"

// StreamState is the state of a stream that is watched. Everything decided by then
// was sent before it.
type StreamState struct {
	// Status is the status of the stream, such as StatusRunning.
	Status string `json:"status"`
	// Timestamp is the length of the audio that the service has received, in
	// seconds: the time on the stream's clock.
	Timestamp float64 `json:"timestamp"`
}

// NewStreamStateEvent builds a message with a state.
func NewStreamStateEvent(s StreamState) Event {
	return withRaw(Event{Type: TypeStreamState, State: &s}, withData[StreamState]{TypeStreamState, &s})
}

// fillState leaves out an invalid state, which is no error: it is of a newer service.
func (e *Event) fillState(raw []byte) {
	var w withData[StreamState]
	if json.Unmarshal(raw, &w) == nil && w.Data != nil && w.Data.Timestamp >= 0 && w.Data.Timestamp <= MaxTimestamp {
		e.State = w.Data
	}
}

// codeMeanings are the WebSocket close codes (RFC 6455, 7.4) in a few words.
var codeMeanings = map[int]string{
	websocket.CloseNormalClosure:           "normal end",
	websocket.CloseGoingAway:               "the service is shutting down",
	websocket.CloseProtocolError:           "the service found a protocol error",
	websocket.CloseUnsupportedData:         "the service does not accept this kind of message",
	websocket.CloseNoStatusReceived:        "closed without a code",
	websocket.CloseAbnormalClosure:         "closed without a close frame",
	websocket.CloseInvalidFramePayloadData: "the service could not parse a message",
	websocket.ClosePolicyViolation:         "against the service's rules",
	websocket.CloseMessageTooBig:           "a message was too large for the service",
	websocket.CloseMandatoryExtension:      "an extension is missing",
	websocket.CloseInternalServerErr:       "internal error",
	websocket.CloseServiceRestart:          "the service restarts",
	websocket.CloseTryAgainLater:           "the service is overloaded",
	1014:                                   "a gateway does not reach the service",
}

// CodeMeaning describes a close code in a few words.
func CodeMeaning(code int) string {
	if code >= 3000 && code <= 4999 {
		return "a code of the service's own"
	}
	return cmp.Or(codeMeanings[code], "a code without a meaning")
}
