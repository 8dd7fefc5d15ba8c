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
	// maxCounted bounds the uses that one counter remembers.
	maxCounted = 1000
)

// Count is where a counter stands.
type Count struct {
	Taken bool // this use was within the limit and is counted
	Used  int  // uses within the window, this one included
	// Reset is when the oldest of them leaves the window.
	Reset time.Time
}

// Counters counts uses over all nodes.
type Counters interface {
	// Take counts one use under a key if fewer than limit were counted in the
	// window that ends now. limit is at most 1000, window at most two minutes.
	Take(ctx context.Context, key string, now time.Time, limit int, window time.Duration) (Count, error)
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
		Bucket: "counters", Storage: jetstream.MemoryStorage, TTL: counterTTL, MaxValueSize: 8 * maxCounted,
	})
	if err != nil {
		return err
	}
	s.secrets, err = s.bucket(ctx, jetstream.KeyValueConfig{
		Bucket: "secrets", Storage: storage, MaxValueSize: 1 << 10,
	})
	return err
}

// Take counts one use. What is kept are the times of the uses, in
// milliseconds: the window slides, and no minute anywhere has more than limit.
// Nodes that race agree by compare-and-set, on their own clocks.
func (s *Store) Take(ctx context.Context, key string, now time.Time, limit int, window time.Duration) (Count, error) {
	sum := sha256.Sum256([]byte(key))
	key = hex.EncodeToString(sum[:])
	limit = min(limit, maxCounted)
	for {
		var uses []int64
		var revision uint64
		entry, err := s.counters.Get(ctx, key)
		switch {
		case err == nil:
			uses, revision = unpackUses(entry.Value(), now.Add(-window)), entry.Revision()
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return Count{}, wrap("count", err)
		}
		if len(uses) >= limit {
			return Count{Used: len(uses), Reset: time.UnixMilli(uses[0]).Add(window)}, nil
		}
		uses = append(uses, now.UnixMilli())
		_, err = s.counters.Update(ctx, key, packUses(uses), revision)
		if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			if err := ctx.Err(); err != nil {
				return Count{}, wrap("count", err)
			}
			continue
		}
		if err != nil {
			return Count{}, wrap("count", err)
		}
		return Count{Taken: true, Used: len(uses), Reset: time.UnixMilli(uses[0]).Add(window)}, nil
	}
}

func packUses(uses []int64) []byte {
	raw := make([]byte, 0, 8*len(uses))
	for _, ms := range uses {
		raw = binary.BigEndian.AppendUint64(raw, uint64(ms))
	}
	return raw
}

// unpackUses returns the uses after a moment.
func unpackUses(raw []byte, after time.Time) []int64 {
	var uses []int64
	for ; len(raw) >= 8; raw = raw[8:] {
		if ms := int64(binary.BigEndian.Uint64(raw)); ms > after.UnixMilli() {
			uses = append(uses, ms)
		}
	}
	return uses
}

// Secret returns the secret of a name. Of nodes that start at once one draws
// it, and the others read what it drew.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	for {
		entry, err := s.secrets.Get(ctx, name)
		if err == nil {
			return entry.Value(), nil
		}
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil, wrap("read secret", err)
		}
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails: it ends the program instead
		if _, err = s.secrets.Create(ctx, name, secret); err == nil {
			return secret, nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return nil, wrap("draw secret", err)
		}
	}
}
