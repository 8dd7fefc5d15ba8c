package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// attemptTimeout bounds one attempt of a call: a response that was lost with
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
// because a write whose response is lost may have been.
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
			return fmt.Errorf("%w: %w", errUnknown, err)
		case <-time.After(pause):
		}
	}
}

// publish stores a message and returns its sequence number.
func (s *Store) publish(ctx context.Context, to string, data []byte, opts ...jetstream.PublishOpt) (seq uint64, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		ack, err := s.js.Publish(ctx, to, data, opts...)
		if err == nil {
			seq = ack.Sequence
		}
		return err
	})
	return seq, err
}

// transient reports whether an error leaves the outcome of a call open or may
// not happen again: the store is electing a leader or cannot be reached.
func transient(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return slices.ContainsFunc([]error{errRetry, errMissing, context.DeadlineExceeded, context.Canceled, nats.ErrTimeout,
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrStaleConnection}, func(e error) bool { return errors.Is(err, e) }) ||
		ok && (api.Code == http.StatusServiceUnavailable && !Full(err) || api.ErrorCode == codeInProcess)
}

// errRetry is a compare-and-set that another writer won.
var errRetry = errors.New("another write came first")

// errUnknown is an unknown outcome.
var errUnknown = errors.New("the store does not respond")

// Unknown reports whether an error leaves the outcome of a write unknown.
func Unknown(err error) bool { return errors.Is(err, errUnknown) }

// Codes of JetStream's errors that the library has no names for.
const (
	codeNoReplicas = 10074 // replicas without a cluster
	codeNoMemory   = 10028
	codeNoRoom     = 10047
	codeNotStored  = 10077
	codeResources  = 10023
	codeInProcess  = 10158 // an earlier attempt of the same message
)

// hasCode reports whether an error of JetStream has one of some codes.
func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && slices.Contains(codes, api.ErrorCode)
}

// conflicts reports whether a write was refused because another one came
// first. A replicated stream uses another code than a single one.
func conflicts(err error) bool {
	return hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// report passes on the outcome of a call. It tells the error hook of a failure,
// and says in the error which call it was.
func (s *Store) report(call string, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrConflict), errors.Is(err, ErrToken),
		errors.Is(err, ErrQuota), errors.Is(err, context.Canceled):
	default:
		s.onError(call)
	}
	return wrap(call, err)
}

// wrap says in an error which call it was.
func wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", call, err)
}
