package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// element is one element of a subject or of a key. Its characters have no
// special meaning to NATS. The length keeps every protocol line far below the
// 4,096 bytes at which a NATS server reports an error that makes the client
// close its connection without reconnecting.
var element = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,128}\z`)

// maxElements bounds the elements of a subject.
const maxElements = 4

// errName is a name that cannot be part of a subject. Nothing is stored under
// such a name, so reading it is the same as reading a name that does not exist.
var errName = fmt.Errorf("%w: the name is not valid (%w)", ErrNotFound, jetstream.ErrKeyNotFound)

// subject joins elements to a subject or a key, or fails with errName. Every
// subject and every key that is not a constant is built or checked here.
func subject(elements ...string) (string, error) {
	if len(elements) > maxElements {
		return "", errName
	}
	for _, e := range elements {
		if !element.MatchString(e) {
			return "", errName
		}
	}
	return strings.Join(elements, "."), nil
}

// bucket is a key-value bucket that checks the keys it is given.
type bucket struct{ kv jetstream.KeyValue }

func checkKey(key string) error {
	_, err := subject(strings.Split(key, ".")...)
	return err
}

// Get returns the newest value of a key.
func (b bucket) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return b.kv.Get(ctx, key)
}

// Put writes a value.
func (b bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	return b.kv.Put(ctx, key, value)
}

// Create writes the value of a key that has none.
func (b bucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	return b.kv.Create(ctx, key, value)
}

// Update writes a value if the newest one has the given revision.
func (b bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	return b.kv.Update(ctx, key, value, revision)
}

// Purge removes a key and all of its values.
func (b bucket) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return b.kv.Purge(ctx, key, opts...)
}
