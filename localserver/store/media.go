package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How long media are kept: at least 24 hours after the write, gone within 48.
const (
	// MediaTTL is how long an object can be read after it was written whole.
	MediaTTL = 26 * time.Hour
	// mediaAge is when its bytes leave the store. What lies between the two is
	// how long a write may take from its first byte to its last.
	mediaAge = 47 * time.Hour
	// MediaWriteTime is that, with an hour to spare.
	MediaWriteTime = mediaAge - MediaTTL - time.Hour
)

const (
	// mediaChunk is how an object is cut up, in bytes: one message each, well
	// within the 1 MiB that a message may have.
	mediaChunk = 256 << 10
	// mediaMemory bounds the media of a store in memory, so that they leave
	// room for sessions.
	mediaMemory = 160 << 20
	// uploadLease is how long a write may go without a sign of life.
	uploadLease = 5 * time.Minute
	// readGrace is how long readers of a replaced object may go on.
	readGrace = time.Hour
)

// ErrFull is a store without room.
var ErrFull = errors.New("the store is full")

// MediaInfo is what is known of an object.
type MediaInfo struct {
	Size    int64 // bytes
	Sum     string
	Written time.Time
}

// Media keeps objects of any size, named within an account. A name is any
// string; it means nothing to the store. An object appears whole or not at
// all: a write that is not committed leaves the earlier one untouched.
type Media interface {
	// CreateMedia begins to write an object.
	CreateMedia(ctx context.Context, account, name string, now func() time.Time) (*MediaWriter, error)
	// StatMedia tells whether there is an object, or returns ErrNotFound.
	StatMedia(ctx context.Context, account, name string, now time.Time) (MediaInfo, error)
	// OpenMedia opens an object for reading, or returns ErrNotFound. ctx
	// bounds all of the reading.
	OpenMedia(ctx context.Context, account, name string, now time.Time) (*MediaReader, error)
	// SweepMedia removes what replaced objects and broken-off writes left
	// behind, and tells how many it removed. Any node may do it at any time.
	SweepMedia(ctx context.Context, now time.Time) (int, error)
}

var _ Media = (*Store)(nil)

// mediaStore is the part of a Store that holds media. An object is a row of
// chunks, a subject each, so that any part of it can be read on its own; a
// record under the object's name says which row it is. The record is what a
// write switches, in one step, when all chunks are there.
//
// Rows that no record names have an entry of their own in the same bucket,
// which says until when to leave them alone: a row that is being written, or
// one that was replaced and still has readers.
type mediaStore struct {
	chunks jetstream.Stream
	names  jetstream.KeyValue
}

// mediaRecord is what stands under a name.
type mediaRecord struct {
	Object string `json:"object"`
	// Prefix comes before the chunks: the head of a file whose length is known
	// only at its end.
	Prefix  []byte    `json:"prefix,omitempty"`
	Size    int64     `json:"size"` // prefix included
	Sum     string    `json:"sum"`  // SHA-256 over chunks, then prefix, in hex
	Written time.Time `json:"written"`
}

func (r mediaRecord) info() MediaInfo { return MediaInfo{Size: r.Size, Sum: r.Sum, Written: r.Written} }

// looseRow is the entry of a row that no record names, or not yet.
type looseRow struct {
	Name  string    `json:"name"` // the key of the record that may come to name it
	Until time.Time `json:"until"`
}

const (
	namePrefix  = "n."
	loosePrefix = "l."
)

// mediaKey is where the record of a name stands. A hash takes names of any
// length and any characters, and no choice of account and name can meet
// another account's.
func mediaKey(account, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(account), account, name))
	return namePrefix + hex.EncodeToString(sum[:])
}

func chunkSubject(object string, n int64) string {
	return fmt.Sprintf("hubbub.media.%s.%d", object, n)
}

// layOutMedia makes the stream of chunks and the bucket of names, or finds
// them.
func (s *Store) layOutMedia(ctx context.Context, storage jetstream.StorageType, replicas int) error {
	maxBytes := int64(-1)
	if storage == jetstream.MemoryStorage {
		maxBytes = mediaMemory
	}
	var err error
	s.media.chunks, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "MEDIA", Subjects: []string{"hubbub.media.*.*"}, Storage: storage, Replicas: replicas,
		MaxAge: mediaAge, MaxBytes: maxBytes, AllowDirect: replicas == 1,
		// A full store takes nothing new; it never makes room by forgetting.
		Discard: jetstream.DiscardNew,
	})
	if err != nil {
		return err
	}
	s.media.names, err = s.bucket(ctx, jetstream.KeyValueConfig{
		Bucket: "media", Storage: storage, TTL: mediaAge, MaxValueSize: 16 << 10,
	})
	return err
}

// StatMedia tells whether there is an object that can be read at the time now.
func (s *Store) StatMedia(ctx context.Context, account, name string, now time.Time) (MediaInfo, error) {
	rec, _, err := s.mediaRecord(ctx, mediaKey(account, name))
	if err != nil {
		return MediaInfo{}, err
	}
	if now.Sub(rec.Written) >= MediaTTL {
		return MediaInfo{}, ErrNotFound
	}
	return rec.info(), nil
}

// mediaRecord reads a record; a revision of 0 and ErrNotFound is none.
func (s *Store) mediaRecord(ctx context.Context, key string) (rec mediaRecord, revision uint64, err error) {
	entry, err := s.media.names.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return rec, 0, ErrNotFound
	case err != nil:
		return rec, 0, wrap("look up media", err)
	}
	if err := json.Unmarshal(entry.Value(), &rec); err != nil {
		return rec, 0, wrap("look up media", err)
	}
	return rec, entry.Revision(), nil
}

// SweepMedia removes the rows that nobody needs any more.
func (s *Store) SweepMedia(ctx context.Context, now time.Time) (swept int, err error) {
	list, err := s.media.names.ListKeysFiltered(ctx, loosePrefix+"*")
	if err != nil {
		return 0, wrap("sweep media", err)
	}
	var keys []string
	for key := range list.Keys() {
		keys = append(keys, key)
	}
	_ = list.Stop()
	for _, key := range keys {
		gone, err := s.sweepRow(ctx, key, now)
		if err != nil {
			return swept, wrap("sweep media", err)
		}
		if gone {
			swept++
		}
	}
	return swept, nil
}

// sweepRow removes one row if its time is over and no record names it.
//
// The entry goes before the chunks, and only in the revision that was looked
// at: a writer renews its entry before it switches, so of the two one fails.
func (s *Store) sweepRow(ctx context.Context, key string, now time.Time) (gone bool, err error) {
	entry, err := s.media.names.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var row looseRow
	if err := json.Unmarshal(entry.Value(), &row); err != nil {
		return false, err
	}
	if now.Before(row.Until) {
		return false, nil
	}
	object := key[len(loosePrefix):]
	rec, _, err := s.mediaRecord(ctx, row.Name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	named := err == nil && rec.Object == object
	err = s.media.names.Purge(ctx, key, jetstream.LastRevision(entry.Revision()))
	switch {
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return false, nil
	case err != nil || named:
		return false, err
	}
	return true, s.dropRow(ctx, object)
}

func (s *Store) dropRow(ctx context.Context, object string) error {
	return s.media.chunks.Purge(ctx, jetstream.WithPurgeSubject("hubbub.media."+object+".*"))
}
