package store

import (
	"context"
	"errors"
	"testing"
	"time"

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

// late is a bucket whose watchers see these entries alone; nil = their NATS server does not
// respond.
type late struct {
	jetstream.KeyValue
	sees []jetstream.KeyValueEntry
}

type lateWatcher struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (w lateWatcher) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

func (w lateWatcher) Stop() error {
	close(w.updates)
	return w.KeyWatcher.Stop()
}

func (l late) WatchFiltered(ctx context.Context, keys []string, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	if l.sees == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w, err := l.KeyValue.WatchFiltered(ctx, keys, opts...)
	updates := make(chan jetstream.KeyValueEntry, len(l.sees))
	for _, entry := range l.sees {
		updates <- entry
	}
	return lateWatcher{w, updates}, err
}

// A list has the newest values, whatever the replica has that its watcher reads.
func TestListsOfAReplicaThatIsBehind(t *testing.T) {
	s := open(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kv := s.secrets.kv
	write := func(value string) jetstream.KeyValueEntry {
		_, err := kv.Put(ctx, "key", []byte(value))
		testkit.NoError(t, err)
		entry, err := kv.Get(ctx, "key")
		testkit.NoError(t, err)
		return entry
	}
	older, newest := write("older"), write("newest")
	for _, c := range []struct {
		name     string
		replicas int
		sees     []jetstream.KeyValueEntry
	}{
		{"nothing", 1, []jetstream.KeyValueEntry{nil}},
		{"the newest value later", clusterReplicas, []jetstream.KeyValueEntry{older, nil, newest}},
		{"an older value", clusterReplicas, []jetstream.KeyValueEntry{older, nil}},
		{"no response", clusterReplicas, nil},
	} {
		s.replicas = c.replicas
		b := s.secrets
		b.kv = late{kv, c.sees}
		got := ""
		err := b.each(ctx, []string{"key"}, func(entry jetstream.KeyValueEntry) error {
			got += string(entry.Value())
			return nil
		})
		if got != "newest" || err != nil {
			t.Errorf("%s: %q (%v)", c.name, got, err)
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
