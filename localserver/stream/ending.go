package stream

import (
	"context"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/store"
)

const (
	// recordTimeout bounds how long the end of a stream waits for the store:
	// the close frame has to be sent within 2 s of end_of_stream.
	recordTimeout = 1500 * time.Millisecond
	// storeTimeout bounds one call of the store.
	storeTimeout = 5 * time.Second
)

// CloseTimeout is how long a stream may take to end after the context of Run
// was canceled.
const CloseTimeout = 2*recordTimeout + closeTimeout

// ending is why and how a stream ends.
type ending struct {
	code    int    // of the close frame; 0 when the connection is lost
	text    string // in the close frame
	message string // in an error message before it, unless ""
	status  store.Status
	cause   string // for the record and the log
}

// The ways in which a stream ends.
var (
	endOfStream    = ending{code: websocket.CloseNormalClosure, status: store.Done, cause: "end of stream"}
	clientClose    = ending{status: store.Done, cause: "closed by the client"}
	connectionLost = ending{status: store.Failed, cause: "connection lost"}
	tooFast        = ending{code: websocket.ClosePolicyViolation, text: "too far ahead of real time",
		message: "Audio is more than 5 s ahead of real time", status: store.Failed, cause: "more than 5 s ahead of real time"}
	noAudio = ending{code: websocket.ClosePolicyViolation, text: "no audio for 60 s",
		message: "No audio for 60 s", status: store.Failed, cause: "no audio for 60 s"}
	keyRevoked = ending{code: websocket.ClosePolicyViolation, text: "the API key was revoked",
		message: "The API key was revoked", status: store.Failed, cause: "the API key was revoked"}
	// Watchers follow the new stream, so they get no error message.
	resumed = ending{code: websocket.ClosePolicyViolation, text: "resumed by another stream", status: store.Failed,
		cause: "resumed by another stream"}
	internalError = ending{code: websocket.CloseInternalServerErr, text: "internal error",
		message: "Internal error; the stream is over", status: store.Failed, cause: "internal error"}
	// notRecorded is what the client gets instead of 1000 if the store has not
	// taken the end of its stream and all events before it.
	notRecorded = ending{code: websocket.CloseInternalServerErr, text: "the record could not be stored",
		message: "The record of the stream could not be stored"}
	// The contract says done after end_of_stream or a close with 1000, else
	// error. A shutdown cuts off the client's audio, so it is an error.
	shutdown = ending{code: websocket.CloseGoingAway, text: "the server is stopping", status: store.Failed,
		cause: "the server was stopped"}
)

// causeEventsLost is the cause in the record of a stream whose events are not
// all in the store.
const causeEventsLost = "its events could not be kept"

// recordEnd writes the end of the stream to the store, after all of its events. What the
// store does not take in the time that the client can be kept waiting is left to the
// outbox. It reports whether all of it is kept.
func (s *Stream) recordEnd(ctx context.Context, end *ending) (kept bool) {
	// A stream that is canceled gets its time as well.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	s.audioWriter.finish(ctx, end.status == store.Done)
	s.snapshots.wait(ctx)
	s.journal.finish(*end, s.config.Now().UTC())
	waitFor(ctx, s.journal.done)
	rest := s.journal.handOver()
	if lost := s.journal.lost; lost > 0 {
		s.log.Error("events of a stream could not be stored", "events", lost)
	}
	kept = rest == nil || s.config.Outbox.Add(rest)
	*end = s.journal.end
	return kept
}
