package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubbub/protocol/testkit"
)

// hook makes a call of a bucket for a key, or does something else; nil makes it.
type hook func(key string, call func() error) error

func (h hook) around(key string, call func() error) error {
	if h == nil {
		return call()
	}
	return h(key, call)
}

// hooked is a bucket with hooks of its reads and writes.
type hooked struct {
	jetstream.KeyValue
	read, write hook
}

func (h *hooked) Get(ctx context.Context, key string) (entry jetstream.KeyValueEntry, err error) {
	err = h.read.around(key, func() (err error) { entry, err = h.KeyValue.Get(ctx, key); return err })
	return entry, err
}

func (h *hooked) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	err = h.write.around(key, func() (err error) { revision, err = h.KeyValue.Put(ctx, key, value); return err })
	return revision, err
}

func (h *hooked) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (revision uint64, err error) {
	err = h.write.around(key, func() (err error) { revision, err = h.KeyValue.Create(ctx, key, value, opts...); return err })
	return revision, err
}

func (h *hooked) Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error) {
	err = h.write.around(key, func() (err error) { revision, err = h.KeyValue.Update(ctx, key, value, last); return err })
	return revision, err
}

func (h *hooked) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	return h.write.around(key, func() error { return h.KeyValue.Purge(ctx, key, opts...) })
}

// once is a hook of the first call for a key that begins with a prefix.
func once(prefix string, first hook) hook {
	done := false
	return func(key string, call func() error) error {
		if done || !strings.HasPrefix(key, prefix) {
			return call()
		}
		done = true
		return first(key, call)
	}
}

// noResponse is a hook of calls that are not made, because there is no leader.
func noResponse(string, func() error) error { return nats.ErrNoResponders }

// lostResponse is a hook of calls that are made, but whose response is lost.
func lostResponse(_ string, call func() error) error {
	_ = call()
	return nats.ErrNoResponders
}

// A write whose response was lost is made once, and is no conflict with itself.
func TestWriteWithoutAResponse(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		ctx, kv := context.Background(), s.secrets.kv
		for _, key := range []string{"new", "old"} {
			revision := uint64(0)
			if key == "old" {
				revision = testkit.Must(kv.Put(ctx, key, []byte("first")))(t)
			}
			b := s.secrets
			b.kv = &hooked{KeyValue: kv, write: once("", lostResponse)}
			next, err := b.write(ctx, key, []byte("mine"), revision)
			entry, unread := kv.Get(ctx, key)
			if err != nil || unread != nil || entry.Revision() != next || string(entry.Value()) != "mine" {
				t.Errorf("%s: revision %d (%v), %v (%v)", key, next, err, entry, unread)
			}
			if _, err := b.write(ctx, key, []byte("mine"), revision); !errors.Is(err, ErrConflict) {
				t.Errorf("%s, again: %v", key, err)
			}
			b.kv = &hooked{KeyValue: kv, write: once("", func(key string, write func() error) error {
				_, _ = kv.Put(ctx, key, []byte("another"))
				return lostResponse(key, write)
			})}
			if _, err := b.write(ctx, key, []byte("later"), next); !errors.Is(err, ErrConflict) {
				t.Errorf("%s, after another writer: %v", key, err)
			}
			next = testkit.Must(kv.Put(ctx, key, []byte("last")))(t)
			for _, want := range []error{nil, ErrConflict} {
				if _, err := b.write(ctx, key, nil, next); !errors.Is(err, want) {
					t.Errorf("%s is removed: %v, want %v", key, err, want)
				}
			}
		}
	})
}

// A write or removal that another write refuses ends when that one has: as a conflict with what
// can be read then, or as carried out.
func TestWriteDuringAnotherOne(t *testing.T) {
	s := open(t, "")
	ctx, kv := t.Context(), s.secrets.kv
	for i, first := range []string{"", "first", "removed"} {
		for _, other := range []string{"", "another"} {
			value := [][]byte{[]byte("mine"), []byte("mine"), nil}[i]
			key, revision, refused := "key-"+first+"-"+other, uint64(0), error(&jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence})
			if first != "" {
				revision, refused = testkit.Must(kv.Put(ctx, key, []byte(first)))(t), jetstream.ErrKeyRevisionMismatch
			}
			b := s.secrets
			reads := 2 // until the other write ends
			b.kv = &hooked{kv, func(_ string, read func() error) error {
				err := read()
				if reads--; reads == 0 && other != "" {
					testkit.Must(kv.Put(ctx, key, []byte(other)))(t)
				}
				return err
			}, func(_ string, write func() error) error {
				if reads > 0 { // nobody can read the other one yet
					return refused
				}
				return write()
			}}
			want, wantErr := string(value), error(nil)
			if other != "" {
				want, wantErr = other, ErrConflict
			}
			_, err := b.write(ctx, key, value, revision)
			got := ""
			if entry, _ := kv.Get(ctx, key); entry != nil {
				got = string(entry.Value())
			}
			if !errors.Is(err, wantErr) || got != want {
				t.Errorf("%s: %v, %q", key, err, got)
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
