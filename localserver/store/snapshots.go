package store

import (
	"context"
	"encoding/binary"
	"time"
)

const (
	// snapshotTTL is how long the snapshot of a stream is kept after it was
	// last written. Voiceprints are personal data, so they are removed before
	// the stream's events.
	snapshotTTL = eventTTL - time.Hour
	// maxSnapshot bounds a snapshot, in bytes.
	maxSnapshot = 256 << 10
	// snapshotMemory bounds the snapshots of a store in memory, in bytes; the
	// oldest are removed.
	snapshotMemory = 32 << 20
)

// PutSnapshot replaces the snapshot of a stream's speakers, which is opaque to the store.
// received is how much audio the stream had received when it was taken; 0 = not known.
func (s *Store) PutSnapshot(ctx context.Context, stream string, snapshot []byte, received time.Duration) error {
	value := binary.BigEndian.AppendUint64(nil, uint64(received))
	return s.report("write snapshot", s.snapshots.Put(ctx, stream, append(value, snapshot...)))
}

// Snapshot returns the newest snapshot of a stream, and how much audio the stream had
// received when it was taken, or ErrNotFound.
func (s *Store) Snapshot(ctx context.Context, stream string) (snapshot []byte, received time.Duration, err error) {
	entry, err := s.snapshots.Get(ctx, stream)
	if err == nil && (entry == nil || len(entry.Value()) < 8) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, 0, s.report("read snapshot", err)
	}
	return entry.Value()[8:], time.Duration(binary.BigEndian.Uint64(entry.Value())), nil
}
