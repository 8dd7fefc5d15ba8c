package store

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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

func snapshotSubject(stream string) (string, error) { return subject("hubbub", "voices", stream) }

// setUpSnapshots creates the NATS stream of snapshots, or finds it: a subject for
// each stream, with its newest message only.
func (s *Store) setUpSnapshots(ctx context.Context, storage jetstream.StorageType) (err error) {
	maxBytes := int64(-1)
	if storage == jetstream.MemoryStorage {
		maxBytes = snapshotMemory
	}
	s.snapshots, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "VOICES", Subjects: []string{"hubbub.voices.*"}, Storage: storage, Replicas: s.replicas,
		MaxMsgsPerSubject: 1, MaxBytes: maxBytes, MaxMsgSize: maxSnapshot,
		// With replicas, reads go to their leader: see newBucket.
		MaxAge: snapshotTTL, AllowDirect: s.replicas == 1,
	})
	return err
}

// PutSnapshot replaces the snapshot of a stream's speakers, which is opaque to the store.
func (s *Store) PutSnapshot(ctx context.Context, stream string, snapshot []byte) error {
	to, err := snapshotSubject(stream)
	if err == nil {
		_, err = s.js.Publish(ctx, to, snapshot)
	}
	return s.report("write snapshot", err)
}

// Snapshot returns the snapshot of a stream, or ErrNotFound.
func (s *Store) Snapshot(ctx context.Context, stream string) ([]byte, error) {
	from, err := snapshotSubject(stream)
	if err != nil {
		return nil, s.report("read snapshot", err)
	}
	m, err := s.snapshots.GetLastMsgForSubject(ctx, from)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, s.report("read snapshot", err)
	}
	return m.Data, nil
}
