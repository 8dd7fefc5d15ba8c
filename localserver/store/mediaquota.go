package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"
)

// reserveStep is how many bytes a write of unknown length asks for at once.
const reserveStep = 4 << 20

// QuotaError is a write that would exceed the quota of its account.
type QuotaError struct {
	Used  int64 // bytes that the account uses, other writes in progress included
	Limit int64
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("the quota of the account is used up: %d of %d bytes", e.Used, e.Limit)
}

// ListMedia returns the objects of an account that can be read, sorted by name, and how
// many bytes of its quota are used, writes in progress included.
func (s *Store) ListMedia(ctx context.Context, account string, now time.Time) (objects []MediaInfo, used int64, err error) {
	key := mediaKey(account, "")
	turn := s.total(key).turn
	if err := turn.Acquire(ctx, 1); err != nil {
		return nil, 0, s.report("list media", err)
	}
	defer turn.Release(1)
	a, err := s.accountMedia(ctx, key)
	if err != nil {
		return nil, 0, s.report("list media", err)
	}
	for _, rec := range a.records {
		if !rec.expired(now) {
			objects = append(objects, rec.MediaInfo)
		}
	}
	slices.SortFunc(objects, func(a, b MediaInfo) int { return strings.Compare(a.Name, b.Name) })
	return objects, a.used(now, "", math.MaxUint64), nil
}

// DeleteMedia deletes an object that can be read at the time now, or returns
// ErrNotFound. Who is reading it can continue.
func (s *Store) DeleteMedia(ctx context.Context, account, name string, now time.Time) error {
	key := mediaKey(account, name)
	readable := func(rec mediaRecord, now time.Time) bool { return !rec.expired(now) }
	return s.report("delete media", s.changeRecord(ctx, key, now, readable, func(revision uint64) error {
		_, err := s.media.names.write(ctx, key, nil, revision)
		return err
	}))
}

// accountMedia is what an account has stored.
type accountMedia struct {
	records map[string]mediaRecord // by blob
	entries map[string]accountEntry
}

type accountEntry struct {
	unreferenced
	revision uint64
}

// accountMedia reads what the account of some record's key has stored.
func (s *Store) accountMedia(ctx context.Context, key string) (accountMedia, error) {
	a := accountMedia{map[string]mediaRecord{}, map[string]accountEntry{}}
	account := accountOf(key)
	// The entries come first: a write that is committed meanwhile may replace a record that was
	// read before.
	err := s.media.names.each(ctx, []string{unreferencedPrefix + account + ".*", namePrefix + account + ".*"},
		func(entry jetstream.KeyValueEntry) error {
			if strings.HasPrefix(entry.Key(), namePrefix) {
				rec, err := decode[mediaRecord](entry.Key(), entry.Value())
				a.records[rec.Blob] = rec
				return err
			}
			u, err := decode[unreferenced](entry.Key(), entry.Value())
			a.entries[entry.Key()[strings.LastIndexByte(entry.Key(), '.')+1:]] = accountEntry{u, entry.Revision()}
			return err
		})
	return a, err
}

// used is how many bytes the account uses: its objects that have not expired,
// and the blobs of replaced objects and of writes. What other writes ask for
// counts if they asked before a revision. The blob except does not count.
func (a accountMedia) used(now time.Time, except string, before uint64) (used int64) {
	for _, rec := range a.records {
		if !rec.expired(now) {
			used += rec.Size
		}
	}
	for blob, u := range a.entries {
		if _, ok := a.records[blob]; ok || blob == except {
			continue
		}
		if used += u.Size; u.revision < before {
			used += u.Ask
		}
	}
	return used
}

// Reserve asks for n bytes of the account's quota, before they are written. A
// *QuotaError says that they are not available.
func (w *MediaWriter) Reserve(n int64) error {
	if w.err == nil {
		w.err = w.reserve(n)
	}
	return wrap("write media", w.err)
}

// grow makes sure that the next n bytes are within the quota.
func (w *MediaWriter) grow(n int64) error {
	more := w.size + n - w.admitted
	if more <= 0 || w.store.media.quota == 0 {
		return nil
	}
	err := w.reserve(max(more, reserveStep))
	if _, over := err.(*QuotaError); over && more < reserveStep {
		err = w.reserve(more)
	}
	return err
}

// total is what an account uses, for the writers of a server alone: most of them need not
// read what the account has stored.
type total struct {
	turn *semaphore.Weighted // one reads or admits at a time
	most int64               // bytes that the account uses at most: what was deleted or has expired since is in it
}

// total returns that of the account of some record's key. On a cluster other nodes admit
// writes, too, so that each writer has to read what the account has stored.
func (s *Store) total(key string) *total {
	t := &total{semaphore.NewWeighted(1), math.MaxInt64}
	if !s.Shared() {
		known, _ := s.media.totals.LoadOrStore(accountOf(key), t)
		t = known.(*total)
	}
	return t
}

// reserve asks for n more bytes.
//
// The writers of a cluster do not wait for each other: each one writes what it
// asks for to the entry of its blob, and then reads what the account uses. What
// was asked for before it counts, whether or not it is granted. So of concurrent
// writers none exceeds the quota, and the first ones succeed.
func (w *MediaWriter) reserve(n int64) error {
	limit := w.store.media.quota
	if limit == 0 {
		return nil
	}
	t := w.store.total(w.key)
	if err := t.turn.Acquire(w.ctx, 1); err != nil { // each turn before it ends by itself
		return err
	}
	defer t.turn.Release(1)
	if err := w.renew(n); err != nil {
		return err
	}
	if t.most > limit-n {
		ctx, cancel := context.WithTimeout(w.ctx, mediaTimeout)
		defer cancel()
		a, err := w.store.accountMedia(ctx, w.key)
		if err != nil {
			return err
		}
		t.most = a.used(w.now(), w.blob, w.lease) + w.admitted
	}
	if t.most > limit-n {
		_ = w.renew(0) // asks no longer; Abort withdraws it as well
		return &QuotaError{Used: t.most, Limit: limit}
	}
	t.most += n
	w.admitted += n
	return nil
}
