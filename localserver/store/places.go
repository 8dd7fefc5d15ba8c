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

// MaxPlaces is the most places that an account can have: as many as one record
// holds.
const MaxPlaces = 8192

// placeGrace is how long a place is held for a session that has not begun yet,
// by clocks that differ a little.
const placeGrace = time.Minute

// Places bound what an account has open over all nodes. limit is at most
// MaxPlaces.
type Places interface {
	// TakePlace takes a place of an account for a session, if fewer than limit
	// are taken, and reports whether it did. To take one again changes nothing.
	TakePlace(ctx context.Context, account, session string, now time.Time, limit int) (bool, error)
	// LeavePlace gives a place back. One that is not given back is free when
	// its session is over.
	LeavePlace(ctx context.Context, account, session string) error
	// PlacesLeft tells whether fewer than limit places of an account are taken.
	PlacesLeft(ctx context.Context, account string, now time.Time, limit int) (bool, error)
}

var _ Places = (*Store)(nil)

// taken are the places of an account: by session, since when.
type taken map[string]time.Time

func (s *Store) layOutPlaces(ctx context.Context, storage jetstream.StorageType) (err error) {
	s.places, err = s.bucket(ctx, jetstream.KeyValueConfig{
		Bucket: "places", Storage: storage, TTL: SessionTTL, MaxValueSize: 1 << 20,
	})
	return err
}

// errNoPlace is an account whose places are all taken.
var errNoPlace = errors.New("no place")

// TakePlace takes a place of an account for a session.
func (s *Store) TakePlace(ctx context.Context, account, session string, now time.Time, limit int) (bool, error) {
	err := s.changePlaces(ctx, account, func(ctx context.Context, t taken) (bool, error) {
		if _, there := t[session]; there {
			return false, nil
		}
		if len(t) >= limit {
			if err := s.clearPlaces(ctx, t, now); err != nil {
				return false, err
			}
		}
		if len(t) >= limit {
			return false, errNoPlace
		}
		t[session] = now.UTC()
		return true, nil
	})
	if errors.Is(err, errNoPlace) {
		return false, nil
	}
	return err == nil, wrap("take place", err)
}

// LeavePlace gives a place back.
func (s *Store) LeavePlace(ctx context.Context, account, session string) error {
	return wrap("leave place", s.changePlaces(ctx, account, func(_ context.Context, t taken) (bool, error) {
		_, there := t[session]
		delete(t, session)
		return there, nil
	}))
}

// PlacesLeft tells whether there is a place.
func (s *Store) PlacesLeft(ctx context.Context, account string, now time.Time, limit int) (left bool, err error) {
	err = s.changePlaces(ctx, account, func(ctx context.Context, t taken) (bool, error) {
		before := len(t)
		if before >= limit {
			if err := s.clearPlaces(ctx, t, now); err != nil {
				return false, err
			}
		}
		left = len(t) < limit
		return len(t) != before, nil
	})
	return left, wrap("look for a place", err)
}

// clearPlaces frees the places of sessions that are over: of a node that died,
// or could not say so. It costs a look at each, and so is done only when there
// is no place otherwise.
func (s *Store) clearPlaces(ctx context.Context, t taken, now time.Time) error {
	for id, since := range t {
		rec, _, err := s.get(ctx, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err != nil || rec.Status.Over() || rec.Status == Created && now.Sub(since) > placeGrace {
			delete(t, id)
		}
	}
	return nil
}

// changePlaces applies step to the places of an account, which says whether it
// changed something, and writes them back, again and again until nobody else
// wrote in between.
func (s *Store) changePlaces(ctx context.Context, account string, step func(context.Context, taken) (bool, error)) error {
	sum := sha256.Sum256([]byte(account))
	key := hex.EncodeToString(sum[:])
	return insist(ctx, func(ctx context.Context) error {
		t := taken{}
		var revision uint64
		entry, err := s.places.Get(ctx, key)
		switch {
		case err == nil:
			revision = entry.Revision()
			if err := json.Unmarshal(entry.Value(), &t); err != nil {
				return err
			}
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return err
		}
		changed, err := step(ctx, t)
		if err != nil || !changed {
			return err
		}
		raw, err := json.Marshal(t)
		if err != nil {
			return err
		}
		_, err = s.places.Update(ctx, key, raw, revision)
		if s.noted(err); errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return errUnsettled
		}
		return err
	})
}
