package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// bucket is a key-value bucket.
type bucket struct {
	kv     jetstream.KeyValue
	stream removable // that holds its values
	prefix string    // of the subjects of its keys
}

// Get returns the newest value of a key, nil if there is none. A key that NATS refuses has none.
func (b bucket) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	entry, err := b.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
		return nil, nil
	}
	return entry, err
}

// Put writes a value.
func (b bucket) Put(ctx context.Context, key string, value []byte) error {
	_, err := b.kv.Put(ctx, key, value)
	return err
}

// Update writes a value if the newest one has the given revision, 0 if there must be
// none or a marker.
func (b bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error) {
	if revision > 0 {
		return b.kv.Update(ctx, key, value, revision)
	}
	if next, err = b.kv.Create(ctx, key, value); conflicts(err) {
		err = fmt.Errorf("%w: %w", jetstream.ErrKeyRevisionMismatch, err)
	}
	return next, err
}

// Purge removes a key and all of its values.
func (b bucket) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	if err := b.stream.store.AdmitDeletion(); err != nil {
		return err
	}
	return b.kv.Purge(ctx, key, opts...)
}

// remove removes a key, or only its values up to a revision unless that is 0. In
// contrast to Purge it leaves no marker, which would be read with the other keys until
// it expires. After a crash an earlier value of the key may be back: the NATS server
// rebuilds its index from its files, in which values that were replaced are not marked
// as removed (nats-server issue 8505).
func (b bucket) remove(ctx context.Context, key string, revision uint64) error {
	options := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(b.prefix + subject(strings.Split(key, ".")...))}
	if revision > 0 {
		options = append(options, jetstream.WithPurgeSequence(revision+1))
	}
	return b.stream.Purge(ctx, options...)
}

// keys returns the keys that match a pattern, removed ones with a marker included.
func (b bucket) keys(ctx context.Context, pattern string) (keys []string, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.prefix+pattern))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			keys = append(keys, strings.TrimPrefix(subject, b.prefix))
		}
		return nil
	})
	return keys, err
}

// encode encodes a record in JSON. Every record can be encoded.
func encode(record any) []byte {
	raw, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return raw
}

// decode decodes the JSON value of a key. After an error it is the zero value.
func decode[T any](key string, raw []byte) (value T, err error) {
	if err = json.Unmarshal(raw, &value); err != nil {
		var zero T
		return zero, fmt.Errorf("record %s cannot be read: %w", key, err)
	}
	return value, nil
}

// ignore logs a record that cannot be read, once: it is as if it did not exist.
func (b bucket) ignore(key string, err error) {
	s := b.stream.store
	if _, logged := s.ignored.LoadOrStore(b.prefix+key, true); !logged {
		s.log.Error("a record of the store is ignored", "bucket", b.kv.Bucket(), "error", err)
	}
}

// read returns the JSON value of a key and its revision, or ErrNotFound and the
// revision 0, or that of a value that cannot be read.
func read[T any](ctx context.Context, b bucket, key string) (value T, revision uint64, err error) {
	var entry jetstream.KeyValueEntry
	err = retry(ctx, func(ctx context.Context) (err error) {
		entry, err = b.Get(ctx, key)
		return err
	})
	if err != nil {
		return value, 0, err
	}
	if entry == nil {
		return value, 0, ErrNotFound
	}
	if value, err = decode[T](key, entry.Value()); err != nil {
		b.ignore(key, err)
		err = ErrNotFound
	}
	return value, entry.Revision(), err
}

// write writes a value if the newest one has the given revision, 0 if there must be
// none, and returns the new one. The value nil removes the key and leaves a marker.
// ErrConflict says that another writer came first, and what it has written can be read: a
// cluster refuses a write as soon as another one begins. An attempt whose response was lost
// counts as carried out if the key reads as it was to be.
func (b bucket) write(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error) {
	attempted := false
	err = retry(ctx, func(ctx context.Context) error {
		if value == nil {
			err = b.Purge(ctx, key, jetstream.LastRevision(revision))
		} else {
			next, err = b.Update(ctx, key, value, revision)
		}
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			attempted = true
			return err
		}
		entry, err := b.Get(ctx, key)
		switch {
		case err != nil:
			return err
		case entry == nil && value == nil && attempted:
			return nil
		case entry == nil && revision == 0, entry != nil && entry.Revision() == revision: // the other write, or the earlier attempt, is not complete yet
			return errRetry
		case entry == nil || !attempted || !bytes.Equal(entry.Value(), value):
			return ErrConflict
		}
		next = entry.Revision()
		return nil
	})
	return next, err
}

// change applies step to the JSON value of a key, the zero value if there is none, and
// writes it back: see bucket.change. It writes nothing if the step has changed nothing.
func change[T any](ctx context.Context, b bucket, key string, step func(ctx context.Context, value *T, exists bool) (changed bool, err error)) error {
	return b.change(ctx, key, func(ctx context.Context, raw []byte) (_ []byte, err error) {
		var value T
		exists := raw != nil
		if exists {
			if value, err = decode[T](key, raw); err != nil {
				b.ignore(key, err)
				exists = false
			}
		}
		if changed, err := step(ctx, &value, exists); err != nil || !changed {
			return nil, err
		}
		return encode(value), nil
	})
}

// change applies step to the newest value of a key, nil if there is none, and writes
// back what it returns, until no other write came in between. It writes nothing if that
// is nil. The step may see its own earlier write, because the response of the store can
// be lost.
func (b bucket) change(ctx context.Context, key string, step func(ctx context.Context, value []byte) ([]byte, error)) error {
	return retry(ctx, func(ctx context.Context) error {
		var value []byte
		var revision uint64
		entry, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		if entry != nil {
			value, revision = entry.Value(), entry.Revision()
		}
		next, err := step(ctx, value)
		if err != nil || next == nil {
			return err
		}
		if _, err = b.Update(ctx, key, next, revision); errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return errRetry
		}
		return err
	})
}

// sharedReads is how many values of a store on a cluster are read at a time.
const sharedReads = 16

// each calls visit for the newest value of every key that matches one of some
// patterns. A value that visit cannot read is ignored. Keys and values are those of the
// leader: see setUpKind.
//
// The first patterns are listed again after the last one: so what moves from a key of one
// pattern to one of another meanwhile is found in either direction, unless a value of the
// other key was read before.
func (b bucket) each(ctx context.Context, patterns []string, visit func(jetstream.KeyValueEntry) error) error {
	entries := map[string]jetstream.KeyValueEntry{}
	for _, pattern := range slices.Concat(patterns, patterns[:len(patterns)-1]) {
		keys, err := b.keys(ctx, pattern)
		if err == nil {
			err = b.getAll(ctx, keys, entries)
		}
		if err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if entry == nil {
			continue
		}
		if err := visit(entry); err != nil {
			b.ignore(entry.Key(), err)
		}
	}
	return nil
}

// getAll adds the newest values of keys that have none in entries yet: nil for a key that was
// removed.
func (b bucket) getAll(ctx context.Context, keys []string, entries map[string]jetstream.KeyValueEntry) error {
	keys = slices.DeleteFunc(keys, func(key string) bool { return entries[key] != nil })
	values := make([]jetstream.KeyValueEntry, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(1) // an embedded server is no faster with more
	if b.stream.store.Shared() {
		group.SetLimit(sharedReads)
	}
	for i, key := range keys {
		group.Go(func() error {
			return retry(ctx, func(ctx context.Context) (err error) {
				values[i], err = b.Get(ctx, key)
				return err
			})
		})
	}
	err := group.Wait()
	for i, key := range keys {
		entries[key] = values[i]
	}
	return err
}

// each is bucket.each for the JSON values of the keys that match one pattern.
func each[T any](ctx context.Context, b bucket, pattern string, visit func(key string, value T)) error {
	return b.each(ctx, []string{pattern}, func(entry jetstream.KeyValueEntry) error {
		value, err := decode[T](entry.Key(), entry.Value())
		if err == nil {
			visit(entry.Key(), value)
		}
		return err
	})
}
