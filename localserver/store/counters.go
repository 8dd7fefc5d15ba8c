package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// counterTTL is how long a counter that nobody touches is kept, and so the
	// longest window.
	counterTTL = 2 * time.Minute
	// MaxCounted bounds the uses that one counter remembers.
	MaxCounted = 1000
	// usedBytes is the length of one use in the store.
	usedBytes = 8 + 8
)

// Count is where a counter stands.
type Count struct {
	Taken int // uses that were within the limit and are counted
	Used  int // uses within the window, these included
	// Reset is when the oldest of them leaves the window.
	Reset time.Time
}

// Counters counts uses over all nodes.
type Counters interface {
	// Take counts n uses under a key, as far as fewer than limit were counted
	// in the window that ends now. limit is at most MaxCounted, window at most two
	// minutes. After an error uses may be counted that nobody has had.
	Take(ctx context.Context, key string, now time.Time, n, limit int, window time.Duration) (Count, error)
}

// Secrets keeps keys that all nodes share.
type Secrets interface {
	// Secret returns the secret of a name: 32 random bytes, drawn by whoever
	// asks first.
	Secret(ctx context.Context, name string) ([]byte, error)
}

var (
	_ Counters = (*Store)(nil)
	_ Secrets  = (*Store)(nil)
)

// layOutCounters makes the buckets of counters and secrets, or finds them.
// Counters live a minute, so they are in memory in any case: a request costs
// no write to a disk.
func (s *Store) layOutCounters(ctx context.Context, storage jetstream.StorageType, replicas int) error {
	var err error
	s.counters, err = s.bucket(ctx, jetstream.KeyValueConfig{
		Bucket: "counters", Storage: jetstream.MemoryStorage, TTL: counterTTL, MaxValueSize: usedBytes * MaxCounted,
	})
	if err != nil {
		return err
	}
	s.secrets, err = s.bucket(ctx, jetstream.KeyValueConfig{
		Bucket: "secrets", Storage: storage, MaxValueSize: 1 << 10,
	})
	return err
}

// use is one use: when, and by which call it was counted.
type use struct {
	ms   int64
	call uint64
}

// Take counts uses. What is kept are their times, in milliseconds: the window
// slides, and no minute anywhere has more than limit. Nodes that race agree by
// compare-and-set, on their own clocks; and a call whose answer is lost knows
// its own uses again, so that none is counted twice.
func (s *Store) Take(ctx context.Context, key string, now time.Time, n, limit int, window time.Duration) (count Count, err error) {
	sum := sha256.Sum256([]byte(key))
	key = hex.EncodeToString(sum[:])
	limit = min(limit, MaxCounted)
	var draw [8]byte
	_, _ = rand.Read(draw[:]) // never fails: it ends the program instead
	call := binary.BigEndian.Uint64(draw[:])
	err = insist(ctx, func(ctx context.Context) error {
		var uses []use
		var revision uint64
		entry, err := s.counters.Get(ctx, key)
		switch {
		case err == nil:
			uses, revision = unpackUses(entry.Value(), now.Add(-window)), entry.Revision()
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return err
		}
		count = Count{Used: len(uses)}
		for _, u := range uses {
			if u.call == call { // a try of ours that has come through
				count.Taken++
			}
		}
		if count.Taken == 0 && len(uses) < limit {
			count.Taken = min(n, limit-len(uses))
			count.Used += count.Taken
			for range count.Taken {
				uses = append(uses, use{now.UnixMilli(), call})
			}
			_, err = s.counters.Update(ctx, key, packUses(uses), revision)
			if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
				return errUnsettled
			}
			if err != nil {
				return err
			}
		}
		count.Reset = time.UnixMilli(uses[0].ms).Add(window)
		return nil
	})
	if err != nil {
		return Count{}, wrap("count", err)
	}
	return count, nil
}

func packUses(uses []use) []byte {
	raw := make([]byte, 0, usedBytes*len(uses))
	for _, u := range uses {
		raw = binary.BigEndian.AppendUint64(raw, uint64(u.ms))
		raw = binary.BigEndian.AppendUint64(raw, u.call)
	}
	return raw
}

// unpackUses returns the uses after a moment.
func unpackUses(raw []byte, after time.Time) []use {
	var uses []use
	for ; len(raw) >= usedBytes; raw = raw[usedBytes:] {
		u := use{int64(binary.BigEndian.Uint64(raw)), binary.BigEndian.Uint64(raw[8:])}
		if u.ms > after.UnixMilli() {
			uses = append(uses, u)
		}
	}
	return uses
}

// Secret returns the secret of a name. Of nodes that start at once one draws
// it, and the others read what it drew.
func (s *Store) Secret(ctx context.Context, name string) (secret []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	drawn := make([]byte, 32)
	_, _ = rand.Read(drawn) // never fails: it ends the program instead
	err = insist(ctx, func(ctx context.Context) error {
		entry, err := s.secrets.Get(ctx, name)
		if err == nil {
			secret = entry.Value()
		}
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return err
		}
		secret = drawn
		if _, err = s.secrets.Create(ctx, name, drawn); errors.Is(err, jetstream.ErrKeyExists) {
			return errUnsettled
		}
		return err
	})
	return secret, wrap("read secret", err)
}
