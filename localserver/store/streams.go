package store

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"time"
)

const (
	// streamTTL is how long the record of a stream stays after its last change: as long
	// as its results can.
	streamTTL = 48 * time.Hour
	// TokenTTL is how long a token opens its stream.
	TokenTTL = 10 * time.Minute
)

// Status is the state of a stream: created, running, then done or error.
type Status string

// The statuses.
const (
	Created Status = "created"
	Running Status = "running"
	Done    Status = "done"
	Failed  Status = "error"
)

// Over reports whether the stream has ended.
func (s Status) Over() bool { return s == Done || s == Failed }

// Stream is the record of one stream. Every change of its status is one
// compare-and-set: of two concurrent callers, one gets ErrConflict.
type Stream struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	// Key is the ID of the API key that created it, "" for a key without one.
	Key string `json:"key,omitempty"`
	// Node is the server that runs the stream, "" until it is begun.
	Node   string `json:"node"`
	Status Status `json:"status"`
	// Input is the JSON object that the stream was created with.
	Input json.RawMessage `json:"input"`
	// Token is the hash of the token that opens the stream, and Attempt the
	// attempt that has used it.
	Token   string `json:"token"`
	Attempt string `json:"attempt,omitempty"`
	// Expires is when the stream can no longer be begun.
	Expires   time.Time  `json:"expires"`
	Started   *time.Time `json:"started,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
	// Cause is why a stream ended, for the operator.
	Cause string `json:"cause,omitempty"`
	// Resume is the earlier stream of the account whose speakers this one
	// continues with.
	Resume string `json:"resume,omitempty"`
	// ResumedBy is the newest stream that has continued with the speakers of this
	// one, "" for none.
	ResumedBy string `json:"resumedBy,omitempty"`
	// Enrolment is the people whom the stream recognises, encrypted with its token.
	// It is personal data, and deleted when the stream ends.
	Enrolment []byte `json:"enrolment,omitempty"`
}

// Claim is one attempt to begin a stream.
type Claim struct {
	Node    string // that runs the stream
	Attempt string // unique for each attempt
}

// OpenedBy reports whether a token is the stream's, used or not. It compares
// hashes in constant time. A plain hash is enough: a token is long and random.
func (s Stream) OpenedBy(token string) bool {
	return subtle.ConstantTimeCompare([]byte(hashOf(token)), []byte(s.Token)) == 1
}

// maxRecord bounds the record of a new stream, in bytes: less than a message
// may have by what is added to the record later.
const maxRecord = 1<<20 - 8<<10

// ErrTooLarge is a stream or job whose input is too large to store. In JSON a
// character such as < takes six bytes.
var ErrTooLarge = errors.New("the input is too large")

// Create writes a new record with the status Created, and the hash of the token that
// opens it. The error is Full when the store is, or ErrTooLarge.
func (s *Store) Create(ctx context.Context, rec Stream, token string) error {
	rec.Status, rec.Token, rec.Attempt = Created, hashOf(token), ""
	raw := encode(rec)
	if len(raw) > maxRecord {
		return ErrTooLarge
	}
	err := s.admitRequest(ctx, len(raw), rec.Resume != "")
	if err == nil {
		_, err = s.streams.write(ctx, rec.ID, raw, 0)
	}
	return s.report("create stream", err)
}

// Get returns a record, or ErrNotFound.
func (s *Store) Get(ctx context.Context, id string) (Stream, error) {
	rec, _, err := read[Stream](ctx, s.streams, id)
	return rec, s.report("get stream", err)
}

// changeStream applies step to the newest record, and writes it back if the step has
// changed it.
func (s *Store) changeStream(ctx context.Context, id string, step func(*Stream) (changed bool, err error)) error {
	return change(ctx, s.streams, id, func(_ context.Context, rec *Stream, exists bool) (bool, error) {
		if !exists {
			return false, ErrNotFound
		}
		return step(rec)
	})
}

// Begin takes a stream from Created to Running and uses up its token, in one step: of
// all concurrent callers, one succeeds. A token that is wrong, used or expired is
// ErrToken. An attempt whose outcome is unknown may be made again.
func (s *Store) Begin(ctx context.Context, id, token string, by Claim, at time.Time) error {
	return s.report("begin stream", s.changeStream(ctx, id, func(rec *Stream) (bool, error) {
		switch {
		case !rec.OpenedBy(token):
			return false, ErrToken
		case rec.Status == Running && rec.Attempt == by.Attempt: // an earlier try of this attempt
			return false, nil
		case rec.Status != Created || !at.Before(rec.Expires):
			return false, ErrToken
		}
		if err := s.admit(ctx, 0, forStreams); err != nil {
			return false, err
		}
		rec.Status, rec.Node, rec.Attempt, rec.Started = Running, by.Node, by.Attempt, &at
		return true, nil
	}))
}

// Withdraw undoes an attempt to begin a stream whose outcome is unknown, and prevents
// it if it is still in flight: the token is valid again. Only the node that made the
// attempt may call it, and only if it runs no stream for it.
func (s *Store) Withdraw(ctx context.Context, id, attempt string) error {
	return s.report("withdraw stream", s.changeStream(ctx, id, func(rec *Stream) (bool, error) {
		switch {
		case rec.Status == Running && rec.Attempt == attempt:
			rec.Status, rec.Attempt, rec.Started = Created, "", nil
			return true, nil
		case rec.Status == Created:
			return true, nil // a new revision: a write of the attempt that is in flight fails
		}
		return false, nil
	}))
}

// Finish takes a stream that is not over to Done or Failed. ErrConflict may
// also be the late response to an earlier try of the same call.
func (s *Store) Finish(ctx context.Context, id string, outcome Status, at time.Time, cause string) error {
	s.tails.Delete(id)
	return s.report("finish stream", s.changeStream(ctx, id, func(rec *Stream) (bool, error) {
		if rec.Status.Over() || !outcome.Over() {
			return false, ErrConflict
		}
		if rec.Started != nil && at.Before(*rec.Started) { // a clock was set, or is another node's
			at = *rec.Started
		}
		rec.Status, rec.Completed, rec.Cause, rec.Enrolment = outcome, &at, cause, nil
		return true, nil
	}))
}

// Resumed notes that another stream continues with the speakers of this one.
func (s *Store) Resumed(ctx context.Context, id, by string) error {
	return s.report("resume stream", s.changeStream(ctx, id, func(rec *Stream) (bool, error) {
		if rec.ResumedBy == by {
			return false, nil
		}
		rec.ResumedBy = by
		return true, nil
	}))
}

// Renew restarts the time to live of a running stream: a bucket counts the
// age of a value from its last write.
func (s *Store) Renew(ctx context.Context, id string) error {
	return s.report("renew stream", s.changeStream(ctx, id, func(rec *Stream) (bool, error) {
		if rec.Status != Running {
			return false, ErrConflict
		}
		return true, nil
	}))
}

// Running returns the streams that run on the nodes for which dead is true.
func (s *Store) Running(ctx context.Context, dead func(node string) bool) (found []Stream, err error) {
	err = each(ctx, s.streams, ">", func(_ string, rec Stream) {
		if rec.Status == Running && dead(rec.Node) {
			found = append(found, rec)
		}
	})
	return found, wrap("list streams", err)
}
