package store

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"hubbub/protocol/testkit"
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

// begun is a bucket in which another writer's write of a key has begun: until it ends, others
// are refused, and nobody can read it.
type begun struct {
	jetstream.KeyValue
	reads int    // until it ends
	end   func() // writes the value, or fails
}

func (b *begun) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	entry, err := b.KeyValue.Get(ctx, key)
	if b.reads--; b.reads == 0 {
		b.end()
	}
	return entry, err
}

func (b *begun) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if b.reads > 0 {
		return 0, &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}
	}
	return b.KeyValue.Create(ctx, key, value, opts...)
}

func (b *begun) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if b.reads > 0 {
		return 0, jetstream.ErrKeyRevisionMismatch
	}
	return b.KeyValue.Update(ctx, key, value, revision)
}

// A write that another one refuses ends when that one has: as a conflict with what can be read
// then, or as written.
func TestWriteDuringAnotherOne(t *testing.T) {
	s := open(t, "")
	ctx, kv := t.Context(), s.secrets.kv
	for _, first := range []string{"", "first"} {
		for _, other := range []string{"", "another"} {
			key, revision := "key-"+first+"-"+other, uint64(0)
			if first != "" {
				var err error
				revision, err = kv.Put(ctx, key, []byte(first))
				testkit.NoError(t, err)
			}
			b := s.secrets
			b.kv = &begun{kv, 2, func() {
				if other != "" {
					_, err := kv.Put(ctx, key, []byte(other))
					testkit.NoError(t, err)
				}
			}}
			want, wantErr := "mine", error(nil)
			if other != "" {
				want, wantErr = other, ErrConflict
			}
			_, err := b.write(ctx, key, []byte("mine"), revision)
			entry, unread := kv.Get(ctx, key)
			if !errors.Is(err, wantErr) || unread != nil || string(entry.Value()) != want {
				t.Errorf("%s: %v, %v (%v)", key, err, entry, unread)
			}
		}
	}
}

// leaderless is a NATS stream of which first a replica that is behind responds, without a leader.
type leaderless struct {
	jetstream.Stream
	asked int
}

func (l *leaderless) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	if l.asked++; l.asked == 1 {
		return &jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Name: "test"}}, nil
	}
	return l.Stream.Info(ctx, opts...)
}

// The keys of a bucket are those that its leader has.
func TestKeysOfALeader(t *testing.T) {
	s := open(t, "")
	testkit.NoError(t, s.secrets.Put(t.Context(), "key", nil))
	b := s.secrets
	b.stream.Stream = &leaderless{Stream: b.stream.Stream}
	if keys, err := b.keys(t.Context(), ">"); err != nil || len(keys) != 1 {
		t.Errorf("%q (%v)", keys, err)
	}
}
