package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// SweepMedia removes expired objects, and the blobs of replaced objects and of abandoned
// writes that have expired. It returns how many blobs it removed. Any node may call it
// at any time.
func (s *Store) SweepMedia(ctx context.Context, now time.Time) (swept int, err error) {
	defer func() { err = s.report("sweep media", err) }()
	expired := func(rec mediaRecord) bool { return rec.expired(now) }
	swept, err = sweep(ctx, s.media.names, namePrefix, expired, func(key string) (bool, error) {
		err := s.changeRecord(ctx, key, now, mediaRecord.expired, func(revision uint64) error {
			return s.media.names.remove(ctx, key, revision) // an earlier record has expired, too
		})
		if errors.Is(err, ErrNotFound) { // it was replaced meanwhile
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return swept, err
	}
	n, err := s.sweepEntries(ctx, now)
	return swept + n, err
}

// sweepEntries removes the unreferenced blobs that have expired.
func (s *Store) sweepEntries(ctx context.Context, now time.Time) (swept int, err error) {
	expired := func(u unreferenced) bool { return !now.Before(u.Until) }
	return sweep(ctx, s.media.names, unreferencedPrefix, expired, func(key string) (bool, error) { return s.sweepBlob(ctx, key, now) })
}

// sweep calls remove for the keys with a prefix whose values have expired, and returns how
// many it removed.
func sweep[T any](ctx context.Context, b bucket, prefix string, expired func(T) bool, remove func(key string) (bool, error)) (swept int, err error) {
	var keys []string
	err = each(ctx, b, prefix+">", func(key string, value T) {
		if expired(value) {
			keys = append(keys, key)
		}
	})
	for _, key := range keys {
		removed, err := remove(key)
		if err != nil {
			return swept, err
		}
		if removed {
			swept++
		}
	}
	return swept, err
}

// sweepBlob removes one blob if its entry has expired and no record refers to
// it, at allExpired unless it may have readers.
//
// The entry is removed before the chunks, and only in the revision that was
// read: a writer renews its entry before it writes the record, so that one of
// the two fails.
func (s *Store) sweepBlob(ctx context.Context, key string, now time.Time) (removed bool, err error) {
	u, revision, err := read[unreferenced](ctx, s.media.names, key)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil || now.Before(u.Until) {
		return false, err
	}
	blob := key[strings.LastIndexByte(key, '.')+1:]
	rec, at, err := read[mediaRecord](ctx, s.media.names, u.Name)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return false, err
	case err != nil && at > 0 && !now.Equal(allExpired): // it cannot be read, and may refer to the blob
		return false, nil
	}
	if err == nil && rec.Blob == blob {
		if now.Equal(allExpired) { // it may be about to lose its record
			return false, nil
		}
		return false, s.media.names.remove(ctx, key, revision)
	}
	// No reader begins any more: each one looks for the record again.
	if s.media.backups.Load() > 0 || now.Equal(allExpired) && s.hasReaders(ctx, blob) {
		return false, nil
	}
	// Once: after a lost response it is not known whether this call or a commit has removed the entry.
	err = s.media.names.Purge(ctx, key, jetstream.LastRevision(revision))
	switch {
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return false, nil
	case err != nil:
		return false, err
	}
	_ = s.media.names.remove(ctx, key, 0)
	return true, s.deleteBlob(ctx, blob)
}

// allExpired is a time at which every entry of a blob has expired.
var allExpired = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// changeRecord calls change to replace or remove the record of a key, in the revision
// that change is given, 0 if there is no record, or returns ErrConflict. One that cannot be read is replaced, too.
// If match is given, there must be a record for which it is true, else the error is
// ErrNotFound.
//
// The blob of the old record gets an entry before the change, so that the sweep finds
// it, and is deleted afterwards unless it may have readers.
func (s *Store) changeRecord(ctx context.Context, key string, now time.Time, match func(mediaRecord, time.Time) bool, change func(revision uint64) error) error {
	for {
		rec, revision, err := read[mediaRecord](ctx, s.media.names, key)
		if err == nil && match != nil && !match(rec, now) {
			return ErrNotFound
		}
		if err != nil && (match != nil || !errors.Is(err, ErrNotFound)) {
			return err
		}
		replaces := rec.Blob != ""
		if replaces {
			if err := s.AdmitDeletion(); err != nil {
				return err
			}
			entry := encode(unreferenced{Name: key, Until: now.Add(readGrace), Size: rec.Size})
			put := func(ctx context.Context) error { return s.media.names.Put(ctx, entryKey(key, rec.Blob), entry) }
			if err := retry(ctx, put); err != nil {
				return err
			}
		}
		err = change(revision)
		conflict := errors.Is(err, ErrConflict)
		switch {
		case replaces && err == nil:
			s.removeUnreferenced(ctx, key, rec.Blob)
		case replaces && conflict:
			// Another writer has changed the record, or is about to and removes the blob then.
			_, _ = s.sweepBlob(ctx, entryKey(key, rec.Blob), allExpired)
		}
		if !conflict {
			return err
		}
	}
}

// removeUnreferenced removes a blob that no record refers to any more, unless it may
// have readers. If that fails, the last reader or the sweep removes it.
func (s *Store) removeUnreferenced(ctx context.Context, key, blob string) {
	if s.hasReaders(ctx, blob) || s.deleteBlob(ctx, blob) != nil {
		return
	}
	_ = s.media.names.remove(ctx, entryKey(key, blob), 0)
}

func (s *Store) deleteBlob(ctx context.Context, blob string) error {
	return s.media.chunks.Purge(ctx, jetstream.WithPurgeSubject(subject("hubbub", "media", blob)+".*"))
}
