package store

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// VoicesTTL is how long the voices of a stream are kept after they were
	// last written: they are personal data, and go before the stream's events.
	VoicesTTL = EventTTL - time.Hour
	// maxVoices bounds a snapshot, in bytes.
	maxVoices = 256 << 10
	// voicesMemory bounds the snapshots of a store in memory; the oldest make
	// room.
	voicesMemory = 32 << 20
)

// Voices keeps, for each stream, the newest snapshot of what its engine knows
// of the voices in it. What is in a snapshot means nothing to the store.
type Voices interface {
	// KeepVoices replaces the snapshot of a session.
	KeepVoices(ctx context.Context, session string, snapshot []byte) error
	// ReadVoices returns the snapshot of a session, or ErrNotFound.
	ReadVoices(ctx context.Context, session string) ([]byte, error)
}

var _ Voices = (*Store)(nil)

func voicesSubject(session string) string { return "hubbub.voices." + session }

// layOutVoices makes the stream of snapshots, or finds it: a subject for each
// session, of which it remembers the newest message.
func (s *Store) layOutVoices(ctx context.Context, storage jetstream.StorageType) (err error) {
	maxBytes := int64(-1)
	if storage == jetstream.MemoryStorage {
		maxBytes = voicesMemory
	}
	s.voices, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "VOICES", Subjects: []string{voicesSubject("*")}, Storage: storage, Replicas: s.replicas,
		MaxMsgsPerSubject: 1, MaxBytes: maxBytes, MaxMsgSize: maxVoices,
		// With replicas, reads go to their leader: see bucket.
		MaxAge: VoicesTTL, AllowDirect: s.replicas == 1,
	})
	return err
}

// KeepVoices replaces the snapshot of a session.
func (s *Store) KeepVoices(ctx context.Context, session string, snapshot []byte) error {
	_, err := s.js.Publish(ctx, voicesSubject(session), snapshot)
	return wrap("keep voices", s.noted(err))
}

// ReadVoices returns the snapshot of a session.
func (s *Store) ReadVoices(ctx context.Context, session string) ([]byte, error) {
	m, err := s.voices.GetLastMsgForSubject(ctx, voicesSubject(session))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, wrap("read voices", err)
	}
	return m.Data, nil
}
