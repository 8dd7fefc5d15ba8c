package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Create writes a new record with the status Created.
func (s *Store) Create(ctx context.Context, rec Session) error {
	rec.Status = Created
	raw, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("session %s: %w", rec.ID, err)
	}
	_, err = s.sessions.Create(ctx, rec.ID, raw)
	if s.noted(err); errors.Is(err, jetstream.ErrKeyExists) {
		return ErrConflict
	}
	return wrap("create session", err)
}

// Get returns a record, or ErrNotFound.
func (s *Store) Get(ctx context.Context, id string) (Session, error) {
	rec, _, err := s.get(ctx, id)
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

// change applies step to the newest record and writes it back, again and again
// until nobody else wrote in between.
func (s *Store) change(ctx context.Context, id string, step func(*Session) error) (Session, error) {
	for {
		rec, revision, err := s.get(ctx, id)
		if err != nil {
			return rec, err
		}
		if err := step(&rec); err != nil {
			return rec, err
		}
		raw, err := json.Marshal(rec)
		if err != nil {
			return rec, fmt.Errorf("session %s: %w", id, err)
		}
		_, err = s.sessions.Update(ctx, id, raw, revision)
		switch s.noted(err); {
		case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
			continue
		case err != nil:
			return rec, wrap("change session", err)
		}
		return rec, nil
	}
}

// Begin takes a session from Created to Running.
func (s *Store) Begin(ctx context.Context, id, node string, at time.Time) (Session, error) {
	return s.change(ctx, id, func(rec *Session) error {
		if rec.Status != Created || !at.Before(rec.Expires) {
			return ErrConflict
		}
		rec.Status, rec.Node, rec.Started = Running, node, &at
		return nil
	})
}

// Finish takes a session that is not over to Done or Failed.
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
