package store

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// attemptTime bounds one try of a call: an answer that was lost with the
	// server that should have given it must not take the time of all others.
	attemptTime = 2 * time.Second
	// Between two tries.
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// insist makes a call again and again until its outcome is known, or ctx ends.
// Then the outcome is not known, and Unknown says so of the error: what the
// call was to write may still be written.
//
// The call finds out by itself whether an earlier try of it has been carried
// out, for a write whose answer is lost may have been.
func insist(ctx context.Context, call func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		err := call(attempt)
		cancel()
		if !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return &unknownError{err}
		case <-time.After(pause):
		}
	}
}

// passing tells whether an error says nothing about what became of a call, or
// may not come again: a store that chooses a leader, or cannot be reached.
func passing(err error) bool {
	for _, e := range []error{errUnsettled, context.DeadlineExceeded, context.Canceled, nats.ErrTimeout,
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrStaleConnection} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == http.StatusServiceUnavailable && !Full(err)
}

// errUnsettled is a compare-and-set that somebody else has come before.
var errUnsettled = errors.New("the store is not sure yet what it has")

// unknownError is an outcome that is not known.
type unknownError struct{ err error }

func (u *unknownError) Error() string { return "the store does not answer: " + u.err.Error() }
func (u *unknownError) Unwrap() error { return u.err }

// Unknown tells whether an error leaves open what became of a write.
func Unknown(err error) bool {
	var u *unknownError
	return errors.As(err, &u)
}
