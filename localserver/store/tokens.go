package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// tokenRecord is what is kept of a token, under its hash.
type tokenRecord struct {
	Session string    `json:"session"`
	Expires time.Time `json:"expires"`
}

// tokenKey is where a token is kept. A plain hash is enough: a token is random
// and long, so there is nothing to guess, and looking it up by its hash leaks
// no part of it through timing.
func tokenKey(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Issue makes a token good for opening one session until expires.
func (s *Store) Issue(ctx context.Context, session, token string, expires time.Time) error {
	raw, err := json.Marshal(tokenRecord{Session: session, Expires: expires})
	if err != nil {
		return err
	}
	_, err = s.tokens.Create(ctx, tokenKey(token), raw)
	return wrap("issue token", s.noted(err))
}

// Redeem uses a token up. The purge names the revision that was read: of all
// callers that read it, the store lets one through.
func (s *Store) Redeem(ctx context.Context, session, token string, now time.Time) error {
	key := tokenKey(token)
	entry, err := s.tokens.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return ErrToken
	case err != nil:
		return wrap("read token", err)
	}
	var rec tokenRecord
	if err := json.Unmarshal(entry.Value(), &rec); err != nil {
		return wrap("read token", err)
	}
	if rec.Session != session || !now.Before(rec.Expires) {
		return ErrToken
	}
	err = s.tokens.Purge(ctx, key, jetstream.LastRevision(entry.Revision()))
	if s.noted(err); errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return ErrToken
	}
	return wrap("redeem token", err)
}
