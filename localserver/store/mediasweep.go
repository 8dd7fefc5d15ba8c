package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// SweepMedia removes expired objects and unreferenced blobs.
func (s *Store) SweepMedia(ctx context.Context, now time.Time) (swept int, err error) {
	swept, err = s.sweepMedia(ctx, now)
	return swept, s.report("sweep media", err)
}

func (s *Store) sweepMedia(ctx context.Context, now time.Time) (swept int, err error) {
	var expired []string
	err = s.eachRecord(ctx, []string{namePrefix + ">"}, 0, func(entry jetstream.KeyValueEntry) error {
		var rec mediaRecord
		if err := json.Unmarshal(entry.Value(), &rec); err != nil {
			return err
		}
		if rec.expired(now) {
			expired = append(expired, entry.Key())
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, key := range expired {
		err := s.removeRecord(ctx, key, now, mediaRecord.expired)
		if errors.Is(err, ErrNotFound) { // it was replaced meanwhile
			continue
		}
		if err != nil {
			return swept, err
		}
		swept++
	}
	n, err := s.sweepEntries(ctx, now)
	return swept + n, err
}

// sweepEntries removes the unreferenced blobs that have expired.
func (s *Store) sweepEntries(ctx context.Context, now time.Time) (swept int, err error) {
	var keys []string
	err = s.eachRecord(ctx, []string{unreferencedPrefix + ">"}, 0, func(entry jetstream.KeyValueEntry) error {
		keys = append(keys, entry.Key())
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		removed, err := s.sweepBlob(ctx, key, now)
		if err != nil {
			return swept, err
		}
		if removed {
			swept++
		}
	}
	return swept, nil
}

// sweepBlob removes one blob if its entry has expired and no record refers to
// it.
//
// The entry is removed before the chunks, and only in the revision that was
// read: a writer renews its entry before it writes the record, so that one of
// the two fails.
func (s *Store) sweepBlob(ctx context.Context, key string, now time.Time) (removed bool, err error) {
	entry, err := s.media.names.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var u unreferenced
	if err := json.Unmarshal(entry.Value(), &u); err != nil {
		return false, err
	}
	if now.Before(u.Until) {
		return false, nil
	}
	blob := key[strings.LastIndexByte(key, '.')+1:]
	rec, _, err := s.mediaRecord(ctx, u.Name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	if err == nil && rec.Blob == blob {
		if now.Equal(ended) { // it may be about to lose its record
			return false, nil
		}
		return false, s.purgeKey(ctx, key, entry.Revision())
	}
	err = s.media.names.Purge(ctx, key, jetstream.LastRevision(entry.Revision()))
	switch {
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return false, nil
	case err != nil:
		return false, err
	}
	_ = s.purgeKey(ctx, key, 0)
	return true, s.deleteBlob(ctx, blob)
}

// ended is after every time until which a blob is kept.
var ended = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// displace takes the record of a key away from its blob: take replaces or
// removes the record, in the revision that it is given. Unless match is nil, a
// record for which it is true must exist, or ErrNotFound is returned; without a
// record the revision is 0. The blob gets its entry before it loses
// its record, and is removed afterwards unless it may have readers.
func (s *Store) displace(ctx context.Context, key string, now time.Time, match func(mediaRecord, time.Time) bool, take func(revision uint64) error) error {
	for {
		rec, revision, err := s.mediaRecord(ctx, key)
		if err == nil && match != nil && !match(rec, now) {
			return ErrNotFound
		}
		if err != nil && (match != nil || !errors.Is(err, ErrNotFound)) {
			return err
		}
		if revision > 0 {
			raw, err := json.Marshal(unreferenced{Name: key, Until: now.Add(readGrace), Size: rec.Size})
			if err != nil {
				return err
			}
			if _, err := s.media.names.Put(ctx, entryKey(key, rec.Blob), raw); err != nil {
				return err
			}
		}
		err = take(revision)
		conflict := errors.Is(err, jetstream.ErrKeyRevisionMismatch)
		if revision > 0 && (err == nil || conflict) { // after a conflict another writer has taken it
			s.removeDisplaced(ctx, key, rec.Blob)
		}
		if !conflict {
			return err
		}
	}
}

// removeRecord removes the record of a key if match is true for it; otherwise it
// returns ErrNotFound.
func (s *Store) removeRecord(ctx context.Context, key string, now time.Time, match func(mediaRecord, time.Time) bool) error {
	return s.displace(ctx, key, now, match, func(revision uint64) error { return s.purgeKey(ctx, key, revision) })
}

// removeDisplaced removes a blob that has lost its record, unless it may have
// readers. If that fails, the last reader or the sweep removes it.
func (s *Store) removeDisplaced(ctx context.Context, key, blob string) {
	if s.hasReaders(ctx, blob) || s.deleteBlob(ctx, blob) != nil {
		return
	}
	_ = s.purgeKey(ctx, entryKey(key, blob), 0)
}

func (s *Store) deleteBlob(ctx context.Context, blob string) error {
	all, err := subject("hubbub", "media", blob)
	if err != nil {
		return err
	}
	return s.media.chunks.Purge(ctx, jetstream.WithPurgeSubject(all+".*"))
}

// purgeKey removes a key, or only its values up to a revision unless that is 0.
// In contrast to bucket.Purge it leaves no marker, which would be read with the
// account's records until it expires.
func (s *Store) purgeKey(ctx context.Context, key string, revision uint64) error {
	if err := checkKey(key); err != nil {
		return err
	}
	options := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(mediaSubject + key)}
	if revision > 0 {
		options = append(options, jetstream.WithPurgeSequence(revision+1))
	}
	return s.media.keys.Purge(ctx, options...)
}

// mediaSubject precedes the keys of the bucket.
const mediaSubject = "$KV.media."

// eachRecord calls visit for the newest value of every key that matches one of
// some patterns, once it has seen everything up to a revision. The revision is
// that of a matching key, or 0.
func (s *Store) eachRecord(ctx context.Context, patterns []string, upTo uint64, visit func(jetstream.KeyValueEntry) error) error {
	entries, err := newestEntries(ctx, s.media.names.kv, patterns, upTo)
	if err == nil {
		err = s.addMissed(ctx, patterns, entries)
	}
	if err != nil {
		return err
	}
	return visitEntries(entries, visit)
}

// eachEntry is eachRecord for any bucket, without addMissed.
func eachEntry(ctx context.Context, kv jetstream.KeyValue, patterns []string, upTo uint64, visit func(jetstream.KeyValueEntry) error) error {
	entries, err := newestEntries(ctx, kv, patterns, upTo)
	if err != nil {
		return err
	}
	return visitEntries(entries, visit)
}

func visitEntries(entries map[string]jetstream.KeyValueEntry, visit func(jetstream.KeyValueEntry) error) error {
	for _, entry := range entries {
		if entry == nil || entry.Operation() != jetstream.KeyValuePut {
			continue
		}
		if err := visit(entry); err != nil {
			return err
		}
	}
	return nil
}

// newestEntries watches the keys of a bucket until it has seen the newest value
// of each one, and everything up to a revision.
func newestEntries(ctx context.Context, kv jetstream.KeyValue, patterns []string, upTo uint64) (map[string]jetstream.KeyValueEntry, error) {
	lister, err := kv.WatchFiltered(ctx, patterns)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lister.Stop() }()
	entries := map[string]jetstream.KeyValueEntry{}
	for complete := false; !complete || upTo > 0; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case entry, ok := <-lister.Updates():
			switch {
			case !ok:
				return nil, errors.New("the connection was closed")
			case entry == nil: // the end of what was stored
				complete = true
			default:
				if entries[entry.Key()] = entry; entry.Revision() >= upTo {
					upTo = 0
				}
			}
		}
	}
	return entries, nil
}

// addMissed adds the keys that a watcher has not seen: it follows the order of
// the writes and counts what it receives, so that a key that is written again
// and again meanwhile can stay ahead of it. A key that was removed is nil.
func (s *Store) addMissed(ctx context.Context, patterns []string, entries map[string]jetstream.KeyValueEntry) error {
	for complete := false; !complete; {
		complete = true
		for _, pattern := range patterns {
			info, err := s.media.keys.Info(ctx, jetstream.WithSubjectFilter(mediaSubject+pattern))
			if err != nil {
				return err
			}
			for subject := range info.State.Subjects {
				key := strings.TrimPrefix(subject, mediaSubject)
				if _, seen := entries[key]; seen {
					continue
				}
				complete = false // while it is read, others may be written
				entries[key], err = s.media.names.Get(ctx, key)
				if errors.Is(err, jetstream.ErrKeyNotFound) {
					entries[key] = nil
				} else if err != nil {
					return err
				}
			}
		}
	}
	return nil
}
