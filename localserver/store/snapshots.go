package store

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
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
	// receivedHeader is the field of a snapshot's message that says how much audio its
	// stream had received, as a Go duration.
	receivedHeader = "Hubbub-Received"
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
		// With replicas, reads go to their leader: see setUpBucket.
		MaxAge: snapshotTTL, AllowDirect: s.replicas == 1,
	})
	return err
}

// PutSnapshot replaces the snapshot of a stream's speakers, which is opaque to the store.
// received is how much audio the stream had received when it was taken.
func (s *Store) PutSnapshot(ctx context.Context, stream string, snapshot []byte, received time.Duration) error {
	to, err := snapshotSubject(stream)
	if err == nil {
		_, err = s.js.PublishMsg(ctx, &nats.Msg{Subject: to, Data: snapshot,
			Header: nats.Header{receivedHeader: {received.String()}}})
	}
	return s.report("write snapshot", err)
}

// Snapshot returns the snapshot of a stream, or ErrNotFound.
func (s *Store) Snapshot(ctx context.Context, stream string) ([]byte, error) {
	m, err := s.newestSnapshot(ctx, stream)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Received returns how much audio a stream had received when its newest snapshot was
// taken, 0 if that is not known.
func (s *Store) Received(ctx context.Context, stream string) (time.Duration, error) {
	m, err := s.newestSnapshot(ctx, stream)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return 0, err
	}
	received, _ := time.ParseDuration(m.Header.Get(receivedHeader))
	return received, nil
}

func (s *Store) newestSnapshot(ctx context.Context, stream string) (*jetstream.RawStreamMsg, error) {
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
	return m, nil
}
