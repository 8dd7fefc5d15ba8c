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
	// attemptTimeout bounds one attempt of a call: an answer that was lost with
	// the server that should have sent it must not take the time of all others.
	attemptTimeout = 2 * time.Second
	// The pause between two attempts grows from firstPause to lastPause.
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// retry makes a call again until its outcome is known, or ctx ends. Then the
// outcome is unknown, and Unknown reports so: what the call was to write may
// still be written.
//
// The call itself has to find out whether an earlier attempt was carried out,
// because a write whose answer is lost may have been.
func retry(ctx context.Context, call func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := call(attempt)
		cancel()
		if !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return &unknownError{err}
		case <-time.After(pause):
		}
	}
}

// transient reports whether an error leaves the outcome of a call open or may
// not happen again: the store is electing a leader or cannot be reached.
func transient(err error) bool {
	for _, e := range []error{errRetry, context.DeadlineExceeded, context.Canceled, nats.ErrTimeout,
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrStaleConnection} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == http.StatusServiceUnavailable && !Full(err)
}

// errRetry is a compare-and-set that another writer won.
var errRetry = errors.New("another write came first")

// unknownError is an unknown outcome.
type unknownError struct{ err error }

func (u *unknownError) Error() string { return "the store does not answer: " + u.err.Error() }
func (u *unknownError) Unwrap() error { return u.err }

// Unknown reports whether an error leaves the outcome of a write unknown.
func Unknown(err error) bool {
	var u *unknownError
	return errors.As(err, &u)
}
