package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	random "math/rand/v2"
	"slices"
	"time"
)

const (
	// counterTTL is how long an unused counter is kept, and so the longest
	// window.
	counterTTL = 2 * time.Minute
	// MaxCounted bounds the uses that one counter stores.
	MaxCounted = 1000
	// useBytes is the length of one use in the store.
	useBytes = 8 + 8
)

// Count is the state of a counter after a use.
type Count struct {
	Taken bool // it was within the limit and is counted
	Used  int  // uses within the window, including this one
	// Reset is when the oldest of them leaves the window.
	Reset time.Time
}

// use is one use: its time in milliseconds, and the call that counted it.
type use struct {
	Millis int64
	Call   uint64
}

// Take counts a use of a key over all nodes, if there are fewer than limit in the window
// that ends now. limit is at most MaxCounted, window at most counterTTL. After an error,
// it may have been counted all the same.
//
// It stores the times of the uses, so that the window slides and no window at all
// contains more than limit. Concurrent nodes agree by compare-and-set, on their own
// clocks. A call whose response is lost recognizes its own use, so that it is not counted
// twice.
func (s *Store) Take(ctx context.Context, key string, now time.Time, limit int, window time.Duration) (count Count, err error) {
	key = hashOf(key)
	call := random.Uint64()
	err = s.counters.change(ctx, key, func(_ context.Context, value []byte) (next []byte, err error) {
		uses := make([]use, len(value)/useBytes)
		_, _ = binary.Decode(value, binary.BigEndian, uses) // the sizes are equal
		uses = slices.DeleteFunc(uses, func(u use) bool {
			age := now.UnixMilli() - u.Millis
			return age >= window.Milliseconds() || age < -window.Milliseconds() // before the clock was set back
		})
		count = Count{Used: len(uses)}
		// Otherwise an earlier attempt of this call was carried out.
		if count.Taken = slices.ContainsFunc(uses, func(u use) bool { return u.Call == call }); !count.Taken && len(uses) < limit {
			count.Taken = true
			count.Used++
			uses = append(uses, use{now.UnixMilli(), call})
			next, err = binary.Append(nil, binary.BigEndian, uses)
		}
		count.Reset = time.UnixMilli(uses[0].Millis).Add(window)
		return next, err
	})
	if err != nil {
		return Count{}, s.report("count", err)
	}
	return count, nil
}

// Secret returns the secret of a name: 32 random bytes that are the same on
// all nodes. The first caller generates them.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	generated := make([]byte, 32)
	_, _ = rand.Read(generated) // never returns an error
	return s.ShareSecret(ctx, name, generated)
}

// ShareSecret is Secret with the value that it has if there is none yet.
func (s *Store) ShareSecret(ctx context.Context, name string, generated []byte) (secret []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = s.secrets.change(ctx, name, func(_ context.Context, value []byte) ([]byte, error) {
		if secret = value; value != nil {
			return nil, nil
		}
		secret = generated
		return generated, nil
	})
	return secret, wrap("read secret", err)
}
