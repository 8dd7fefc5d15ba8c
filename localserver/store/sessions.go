package store

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// hashed is what is kept of a token. A plain hash is enough: a token is random
// and long, so there is nothing to guess.
func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// OpenedBy tells whether a token is the session's, used or not. The hashes are
// compared in constant time.
func (s Session) OpenedBy(token string) bool {
	return subtle.ConstantTimeCompare([]byte(hashed(token)), []byte(s.Token)) == 1
}

// Create writes a new record with the status Created.
func (s *Store) Create(ctx context.Context, rec Session, token string) error {
	rec.Status, rec.Token, rec.Attempt = Created, hashed(token), ""
	raw, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("session %s: %w", rec.ID, err)
	}
	tried := false
	return wrap("create session", insist(ctx, func(ctx context.Context) error {
		_, err := s.sessions.Create(ctx, rec.ID, raw)
		if s.noted(err); !errors.Is(err, jetstream.ErrKeyExists) {
			tried = true
			return err
		}
		if !tried {
			return ErrConflict
		}
		there, _, err := s.get(ctx, rec.ID) // perhaps by the try before
		if err == nil && there.Token != rec.Token {
			err = ErrConflict
		}
		return err
	}))
}

// Get returns a record, or ErrNotFound.
func (s *Store) Get(ctx context.Context, id string) (rec Session, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		rec, _, err = s.get(ctx, id)
		return err
	})
	return rec, err
}

func (s *Store) get(ctx context.Context, id string) (rec Session, revision uint64, err error) {
	entry, err := s.sessions.Get(ctx, id)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrInvalidKey):
		return rec, 0, ErrNotFound
	case err != nil:
		return rec, 0, wrap("read session", err)
	}
	rec, err = parseSession(id, entry.Value())
	return rec, entry.Revision(), err
}

func parseSession(id string, raw []byte) (rec Session, err error) {
	if err = json.Unmarshal(raw, &rec); err != nil {
		err = fmt.Errorf("session %s cannot be read: %w", id, err)
	}
	return rec, err
}

// errAsItIs is a step that leaves the record as it is.
var errAsItIs = errors.New("nothing to change")

// change applies step to the newest record and writes it back, again and again
// until nobody else wrote in between. The step may see what it has written
// itself: an answer of the store can be lost.
func (s *Store) change(ctx context.Context, id string, step func(*Session) error) (rec Session, err error) {
	err = insist(ctx, func(ctx context.Context) error {
		var revision uint64
		if rec, revision, err = s.get(ctx, id); err != nil {
			return err
		}
		if err := step(&rec); err != nil {
			return err
		}
		raw, err := json.Marshal(rec)
		if err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
		_, err = s.sessions.Update(ctx, id, raw, revision)
		if s.noted(err); errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return errUnsettled
		}
		return wrap("change session", err)
	})
	if errors.Is(err, errAsItIs) {
		err = nil
	}
	return rec, err
}

// Begin takes a session from Created to Running and uses its token up, in one
// step: of all callers that race, the store lets one through.
func (s *Store) Begin(ctx context.Context, id, token string, by Opening, at time.Time) (Session, error) {
	return s.change(ctx, id, func(rec *Session) error {
		switch {
		case !rec.OpenedBy(token):
			return ErrToken
		case rec.Status == Running && rec.Attempt == by.Attempt: // an earlier try of ours
			return errAsItIs
		case rec.Status != Created || !at.Before(rec.Expires):
			return ErrToken
		}
		rec.Status, rec.Node, rec.Attempt, rec.Started = Running, by.Node, by.Attempt, &at
		return nil
	})
}

// Withdraw takes back what an attempt has written, or may write yet.
func (s *Store) Withdraw(ctx context.Context, id, attempt string) error {
	_, err := s.change(ctx, id, func(rec *Session) error {
		switch {
		case rec.Status == Running && rec.Attempt == attempt:
			rec.Status, rec.Attempt, rec.Started = Created, "", nil
			return nil
		case rec.Status == Created:
			return nil // a new revision: what the attempt has on the way comes too late
		}
		return errAsItIs
	})
	return err
}

// Finish takes a session that is not over to Done or Failed. ErrConflict may
// also be the late answer to a try of the same call.
func (s *Store) Finish(ctx context.Context, id string, outcome Status, at time.Time, cause string) error {
	s.forgetHead(id)
	_, err := s.change(ctx, id, func(rec *Session) error {
		if rec.Status.Over() || !outcome.Over() {
			return ErrConflict
		}
		rec.Status, rec.Completed, rec.Cause = outcome, &at, cause
		return nil
	})
	return err
}

// Renew restarts the time to live of a running session: a bucket counts a
// value's age from its last write.
func (s *Store) Renew(ctx context.Context, id string) error {
	_, err := s.change(ctx, id, func(rec *Session) error {
		if rec.Status != Running {
			return ErrConflict
		}
		return nil
	})
	return err
}

// Orphans lists the sessions that other nodes left behind.
func (s *Store) Orphans(ctx context.Context, node string, now time.Time) ([]Session, error) {
	return s.list(ctx, func(rec Session) bool {
		expired := rec.Status == Created && !now.Before(rec.Expires)
		return rec.Node != node && (rec.Status == Running || expired)
	})
}

// wrap says what was tried.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
