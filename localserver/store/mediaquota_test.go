package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubbub/localserver/store/embedded"
	"hubbub/protocol/testkit"
)

const quota = 1 << 20

func openQuota(t testing.TB, dir string) *Store {
	t.Helper()
	s := testkit.Must(Open(context.Background(), Options{Dir: dir, AccountStorage: quota}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// write writes n bytes; with announced it asks for all of them first.
func (s *Store) write(account, name string, n int, announced bool, when time.Time) error {
	w, err := s.CreateMedia(context.Background(), account, name, at(when))
	if err != nil {
		return err
	}
	defer w.Abort()
	if announced {
		if err := w.Reserve(int64(n)); err != nil {
			return err
		}
	}
	if _, err := w.Write(noise(n, 1)); err != nil {
		return err
	}
	_, err = w.Commit(nil)
	return err
}

// uses checks what account a uses, and the names of its objects.
func (s *Store) uses(t testing.TB, when time.Time, want int64, names ...string) {
	t.Helper()
	objects, used, err := s.ListMedia(context.Background(), "a", when)
	var got []string
	for _, o := range objects {
		got = append(got, o.Name)
	}
	if err != nil || used != want || !slices.Equal(got, names) {
		t.Errorf("%d bytes in %q, %v; want %d in %q", used, got, err, want, names)
	}
}

func over(t testing.TB, err error) {
	t.Helper()
	var q *QuotaError
	if !errors.As(err, &q) || q.Limit != quota {
		t.Errorf("over the quota: %v", err)
	}
}

func TestAccountStorage(t *testing.T) {
	for _, announced := range []bool{true, false} {
		s := openQuota(t, "")
		testkit.NoError(t, s.write("a", "x", quota-1000, announced, noon))
		if err := s.write("a", "y", 1000, announced, noon); err != nil {
			t.Errorf("what fits exactly: %v", err)
		}
		over(t, s.write("a", "z", 1, announced, noon))
		s.uses(t, noon, quota, "x", "y")
		if err := s.write("b", "z", quota, announced, noon); err != nil {
			t.Errorf("another account: %v", err)
		}
		ctx := context.Background()
		if err := s.DeleteMedia(ctx, "b", "x", noon); !errors.Is(err, ErrNotFound) {
			t.Errorf("another account's object: %v", err)
		}
		for range 2 {
			testkit.NoError(t, s.DeleteMedia(ctx, "a", "x", noon))
			s.uses(t, noon, 1000, "y")
			if err := s.DeleteMedia(ctx, "a", "x", noon); !errors.Is(err, ErrNotFound) {
				t.Errorf("deleted twice: %v", err)
			}
			if err := s.write("a", "x", quota-1000, announced, noon); err != nil {
				t.Errorf("after the deletion: %v", err)
			}
		}
		// What has expired does not count, and is removed.
		s.uses(t, noon.Add(MediaTTL), 0)
		if n, err := s.SweepMedia(ctx, noon.Add(MediaTTL)); n != 3 || err != nil || s.chunkCount(t) != 0 {
			t.Errorf("swept %d, %v; %d chunks are left", n, err, s.chunkCount(t))
		}
		if err := s.write("a", "x", quota, announced, noon.Add(MediaTTL)); err != nil {
			t.Errorf("after the expiry: %v", err)
		}
		if info, err := s.media.names.stream.Info(ctx); err != nil || info.State.Msgs != 1 {
			t.Errorf("%d keys for one object, %v", info.State.Msgs, err)
		}
	}
}

// Of many writers at once as many succeed as fit, in two processes as in one.
func TestAccountStorageWithRacingWriters(t *testing.T) {
	const writers, fit = 20, 8 // each one reads what all have: more of them take longer than a step may on a busy machine
	for _, announced := range []bool{true, false} {
		s := openQuota(t, "")
		var stored, refused atomic.Int64
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				err := s.write("a", fmt.Sprint(i), quota/fit, announced, noon)
				var q *QuotaError
				switch {
				case err == nil:
					stored.Add(1)
				case errors.As(err, &q):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		_, used, err := s.ListMedia(context.Background(), "a", noon)
		if err != nil || used != stored.Load()*quota/fit || used > quota || stored.Load()+refused.Load() != writers {
			t.Errorf("%d stored, %d refused, %d bytes used, %v", stored.Load(), refused.Load(), used, err)
		}
		if announced && stored.Load() != fit {
			t.Errorf("%d objects were stored, %d fit", stored.Load(), fit)
		}
		if want := uint64(stored.Load()); s.chunkCount(t) != want {
			t.Errorf("%d chunks of %d objects", s.chunkCount(t), want)
		}
	}
}

// accepting is a bucket that accepts every write.
type accepting struct{ jetstream.KeyValue }

func (accepting) Create(context.Context, string, []byte, ...jetstream.KVCreateOpt) (uint64, error) {
	return 1, nil
}

// A writer waits for the others and the lists of its account, however many there are.
func TestAccountStorageInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{embedded: &embedded.Server{}}
		s.media.quota, s.media.names.kv = quota, accepting{}
		w := &MediaWriter{store: s, ctx: t.Context(), now: time.Now, key: mediaKey("a", "x")}
		known := s.total(w.key)
		known.most = 0
		testkit.NoError(t, known.turn.Acquire(t.Context(), 1))
		time.AfterFunc(2*mediaTimeout, func() { known.turn.Release(1) })
		testkit.NoError(t, w.Reserve(1))
	})
}

// A replaced or deleted object counts as long as it is read.
func TestAccountStorageWithReaders(t *testing.T) {
	s := openQuota(t, "")
	testkit.NoError(t, s.write("a", "x", quota/2, true, noon))
	r := testkit.Must(s.OpenMedia(context.Background(), "a", "x", noon))(t)
	testkit.NoError(t, s.DeleteMedia(context.Background(), "a", "x", noon))
	s.uses(t, noon, quota/2)
	over(t, s.write("a", "y", quota/2+1, true, noon))
	if n, err := io.Copy(io.Discard, r); n != quota/2 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	testkit.NoError(t, r.Close())
	s.uses(t, noon, 0)
	testkit.Equal(t, s.chunkCount(t), 0, "chunks are left")
}

// An upload in progress uses what it has reserved. If it ended with its process, that is free at the next start.
func TestAccountStorageAfterAnAbandonedWrite(t *testing.T) {
	dir := t.TempDir()
	s := openQuota(t, dir)
	w := testkit.Must(s.CreateMedia(context.Background(), "a", "x", time.Now))(t)
	testkit.NoError(t, w.Reserve(quota))
	s.uses(t, time.Now(), quota)
	testkit.Must(w.Write(noise(quota/2, 1)))(t)
	over(t, s.write("a", "y", 1, true, time.Now()))
	testkit.NoError(t, s.Close())
	again := openQuota(t, dir)
	again.uses(t, time.Now(), 0)
	testkit.Equal(t, again.chunkCount(t), 0, "chunks are left")
	testkit.NoError(t, again.write("a", "y", quota, true, time.Now()))
}

// Keys that are removed while they are read are not found, and the others are.
func TestKeysThatAreRemovedMeanwhile(t *testing.T) {
	s := openQuota(t, "")
	ctx, names := t.Context(), s.media.names
	const all, kept = 100, 10
	for i := range all {
		testkit.NoError(t, names.Put(ctx, fmt.Sprint("n.a.", i), nil))
	}
	names.kv = &hooked{KeyValue: names.kv, read: once("", func(_ string, read func() error) error {
		for i := kept; i < all; i++ {
			testkit.NoError(t, names.remove(ctx, fmt.Sprint("n.a.", i), 0))
		}
		return read()
	})}
	found := map[string]bool{}
	testkit.NoError(t, names.each(ctx, []string{"n.a.*"}, func(entry jetstream.KeyValueEntry) error {
		found[entry.Key()] = true
		return nil
	}))
	for i := range all {
		if key := fmt.Sprint("n.a.", i); found[key] != (i < kept) {
			t.Errorf("%s: %v", key, found[key])
		}
	}
}

// A write reads what the account has stored only if that may exceed the quota.
func TestAccountStorageIsCountedOnce(t *testing.T) {
	s := openQuota(t, "")
	testkit.NoError(t, s.write("a", "x", quota/4, true, noon))
	reads := 0
	s.media.names.kv = &hooked{KeyValue: s.media.names.kv, read: func(key string, read func() error) error {
		if key == mediaKey("a", "x") {
			reads++
		}
		return read()
	}}
	for i, c := range []struct {
		name    string
		n       int
		counted bool
	}{{"y", quota / 4, false}, {"y", quota / 4, false}, {"y", quota / 4, false}, {"y", quota / 4, true}, {"y", quota / 4, false}} {
		reads = 0
		testkit.NoError(t, s.write("a", c.name, c.n, true, noon))
		testkit.Equal(t, reads > 0, c.counted, "write", i, "has read the other objects")
	}
	over(t, s.write("a", "z", quota/2+1, true, noon))
	s.uses(t, noon, quota/2, "x", "y")
	testkit.NoError(t, s.write("a", "z", quota/2, true, noon))
}

// What another write has reserved counts, also while that write is committed to a name that
// was read before.
func TestAccountStorageDuringACommit(t *testing.T) {
	for name, prepare := range map[string]func(s *Store) error{
		"replaced": func(*Store) error { return nil },
		"deleted":  func(s *Store) error { return s.DeleteMedia(t.Context(), "a", "x", noon) },
	} {
		s := openQuota(t, "")
		testkit.NoError(t, s.write("a", "x", 1000, true, noon))
		testkit.NoError(t, prepare(s))
		const reserved = quota / 2
		w := testkit.Must(s.CreateMedia(t.Context(), "a", "x", at(noon)))(t)
		testkit.NoError(t, w.Reserve(reserved))
		testkit.Must(w.Write(noise(reserved, 1)))(t)
		s.media.names.kv = &hooked{KeyValue: s.media.names.kv, read: once(mediaKey("a", "x"), func(_ string, read func() error) error {
			defer func() { testkit.Must(w.Commit(nil))(t) }()
			return read()
		})}
		if err := s.write("a", "y", quota-reserved+1, true, noon); !errors.As(err, new(*QuotaError)) {
			t.Errorf("%s: a write beyond the quota: %v", name, err)
		}
		s.uses(t, noon, reserved, "x")
	}
}
