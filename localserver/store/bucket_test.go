package store

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// deaf is a bucket of which the response to the next update is lost.
type deaf struct {
	jetstream.KeyValue
	before func() // what another writer does first
	lost   bool
}

func (d *deaf) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if d.lost {
		return d.KeyValue.Update(ctx, key, value, revision)
	}
	d.lost = true
	if d.before != nil {
		d.before()
	}
	_, _ = d.KeyValue.Update(ctx, key, value, revision)
	return 0, context.DeadlineExceeded
}

// A write whose response was lost is made once, and is no conflict with itself.
func TestWriteWithoutAResponse(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx, kv := context.Background(), s.secrets.kv
		for _, key := range []string{"new", "old"} {
			revision := uint64(0)
			if key == "old" {
				var err error
				if revision, err = kv.Put(ctx, key, []byte("first")); err != nil {
					t.Fatal(err)
				}
			}
			b := s.secrets
			b.kv = &deaf{KeyValue: kv}
			next, err := b.write(ctx, key, []byte("mine"), revision)
			entry, unread := kv.Get(ctx, key)
			if err != nil || unread != nil || entry.Revision() != next || string(entry.Value()) != "mine" {
				t.Errorf("%s: revision %d (%v), %v (%v)", key, next, err, entry, unread)
			}
			if _, err := b.write(ctx, key, []byte("mine"), revision); !errors.Is(err, ErrConflict) {
				t.Errorf("%s, again: %v", key, err)
			}
			b.kv = &deaf{KeyValue: kv, before: func() { _, _ = kv.Put(ctx, key, []byte("another")) }}
			if _, err := b.write(ctx, key, []byte("later"), next); !errors.Is(err, ErrConflict) {
				t.Errorf("%s, after another writer: %v", key, err)
			}
		}
	})
}
