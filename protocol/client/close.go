package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// Reason says why a stream ended.
type Reason int

// The reasons for the end of a stream.
const (
	// Completed: the service closed the stream after end_of_stream, with
	// 1000 or without a code. The only normal end.
	Completed Reason = iota + 1
	// EndedEarly: the service closed with 1000 before end_of_stream.
	EndedEarly
	// Policy: the service refuses what this client sent (1008; also 1002,
	// 1003, 1007, 1009, 1010 and a service's own codes from 3000 on).
	Policy
	// GoingAway: the service shuts down or restarts (1001, 1012, 1013).
	GoingAway
	// ServerError: the service failed (1011, and codes without a meaning).
	ServerError
	// ProtocolError: what the service sent is not WebSocket, or too large.
	ProtocolError
	// Lost: the connection broke without a close.
	Lost
	// TimedOut: the service was silent, took no more audio, or did not close
	// after end_of_stream.
	TimedOut
	// Cancelled: this side closed the stream.
	Cancelled
)

// String is one word, or two, for the reason.
func (r Reason) String() string {
	return [...]string{"open", Completed: "completed", EndedEarly: "ended early", Policy: "refused", GoingAway: "going away",
		ServerError: "server error", ProtocolError: "protocol error", Lost: "connection lost", TimedOut: "timed out", Cancelled: "cancelled"}[r]
}

// CloseInfo says how a stream ended.
type CloseInfo struct {
	Reason Reason
	// Code is the code of the service's close frame (RFC 6455, 7.4); 0 where
	// none came, 1005 for a frame without a code.
	Code int
	// Text is the reason in the close frame, cleaned for one line of a terminal.
	Text string
	// Err describes the end in one line and has a Hint; nil only for Completed.
	Err error
}

// ErrStreamOver is what Send and EndOfStream return, wrapped, once the stream
// has ended. Wait says why.
var ErrStreamOver = errors.New("the stream is over")

// errClosedHere is the error of a stream that this side closed.
var errClosedHere = fmt.Errorf("the stream was closed by this side: %w", context.Canceled)

// closedBy is the end of a stream by a close frame of the service. ended says
// that its end was expected: end_of_stream had been sent.
func closedBy(code int, text string, ended bool) CloseInfo {
	info := CloseInfo{Code: code, Text: protocol.Clean(text, protocol.MaxCloseText)}
	fix := ""
	switch code {
	case websocket.CloseNormalClosure, websocket.CloseNoStatusReceived:
		if ended {
			info.Reason = Completed
			return info
		}
		info.Reason = EndedEarly
		info.Err = hint.Errorf("Turns up to here are kept; start again for the rest; if it happens again, ask the operator of the service.",
			"the service ended the stream before the audio did%s", quoted(code, info.Text))
		return info
	case websocket.CloseGoingAway, websocket.CloseServiceRestart, websocket.CloseTryAgainLater:
		info.Reason, fix = GoingAway, "Turns up to here are kept; start again in a moment."
	case websocket.ClosePolicyViolation:
		info.Reason, fix = Policy, "Common rules: no audio more than 5 s ahead of real time (use --pace realtime), none missing for 60 s, an API key that is not revoked. Another one: ask the operator of the service."
	case websocket.CloseProtocolError, websocket.CloseUnsupportedData, websocket.CloseInvalidFramePayloadData,
		websocket.CloseMessageTooBig, websocket.CloseMandatoryExtension:
		info.Reason, fix = Policy, "Client and service may be of different versions, or a proxy between them changes the stream."
	default:
		info.Reason, fix = ServerError, "The service failed; turns up to here are kept, try again."
		if code >= 3000 && code <= 4999 {
			info.Reason, fix = Policy, "Look the code up in the documentation of the service."
		}
	}
	info.Err = hint.Errorf(fix, "the service closed the stream: %s%s", protocol.CodeMeaning(code), quoted(code, info.Text))
	return info
}

// quoted is a close frame in parentheses.
func quoted(code int, text string) string {
	if text == "" {
		return fmt.Sprintf(" (%d)", code)
	}
	return fmt.Sprintf(" (%d %q)", code, text)
}
