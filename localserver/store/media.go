package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The times to live of media: at least 24 hours after the write, at most 48.
const (
	// MediaTTL is how long an object can be read after it was committed.
	MediaTTL = 26 * time.Hour
	// mediaAge is when a chunk is removed. Its first chunk is written before
	// the object is committed, so a write may take at most the difference.
	mediaAge = 47 * time.Hour
	// MediaWriteTime is how long a write may take: that difference, with an hour to spare.
	MediaWriteTime = mediaAge - MediaTTL - time.Hour
)

const (
	// mediaChunk is the size of a chunk, in bytes: one message each, well
	// within the 1 MiB that a message may have.
	mediaChunk = 256 << 10
	// MediaMemory bounds the media of a store in memory, in bytes, so that they
	// leave room for streams.
	MediaMemory = 160 << 20
	// chunksOverhead is beyond what the NATS server adds to that many bytes of chunks.
	chunksOverhead = 1 << 20
	// writeLease is how long a write may make no progress.
	writeLease = 5 * time.Minute
	// readGrace is how long a replaced or deleted object can still be read.
	readGrace = time.Hour
)

// MediaInfo describes an object.
type MediaInfo struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"` // bytes, the prefix of its record included
	Sum     string    `json:"sum"`  // SHA-256 over chunks, then prefix, in hex
	Written time.Time `json:"written"`
}

// mediaStore is the part of a Store that holds media: objects of any size, named within
// an account. A name is any string and opaque to the store. The bytes of an object
// are a blob: a sequence of chunks, a subject each, so that any part can be
// read on its own. A record under the object's name refers to the blob. A write
// replaces the record, in one step, when all chunks are stored and it is committed.
//
// A blob without a record, because it is being written or was replaced and may
// still have readers, has an entry in the same bucket that says until when to
// keep it.
//
// The keys of records and entries begin with a hash of the account, so that
// what an account has stored is found without reading anything else.
type mediaStore struct {
	chunks removable
	names  bucket
	quota  int64    // bytes that an account may use, 0 = no limit
	totals sync.Map // of a store that is not shared: accountOf to *total

	backups atomic.Int32 // that are being made: each one may read any blob
	mu      sync.Mutex
	readers map[string]int // of this process, by blob
}

// mediaRecord is the value of a name.
type mediaRecord struct {
	MediaInfo
	Blob string `json:"object"`
	// Prefix precedes the chunks: the header of a file whose length is known
	// only at its end.
	Prefix []byte `json:"prefix,omitempty"`
}

// expired reports whether the object can no longer be read.
func (r mediaRecord) expired(now time.Time) bool { return now.Sub(r.Written) >= MediaTTL }

// unreferenced is the entry of a blob that no record refers to, or not yet.
type unreferenced struct {
	Name  string    `json:"name"` // the key of the record that may refer to it
	Until time.Time `json:"until"`
	// Size is how many bytes the blob has or was admitted with, and Ask how many
	// more its writer asks for: see reserve.
	Size int64 `json:"size"`
	Ask  int64 `json:"ask,omitempty"`
}

const (
	namePrefix         = "n."
	unreferencedPrefix = "l."
	permitPrefix       = "u."
)

// hashOf is the form in which accounts and names are part of a key, so that they
// can be any string, and in which tokens are stored.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// mediaKey is the key of a name's record.
func mediaKey(account, name string) string {
	return namePrefix + hashOf(account) + "." + hashOf(name)
}

// accountOf is what the keys of an account's records and entries begin with, after the prefix.
func accountOf(key string) string { return strings.Split(key, ".")[1] }

// entryKey is the key of the entry of a blob, whose record has or will have
// some key.
func entryKey(record, blob string) string {
	return unreferencedPrefix + subject(accountOf(record), blob)
}

func chunkSubject(blob string, n int64) string {
	return subject("hubbub", "media", blob, strconv.FormatInt(n, 10))
}

// StatMedia describes an object that can be read at the time now, or returns ErrNotFound.
func (s *Store) StatMedia(ctx context.Context, account, name string, now time.Time) (MediaInfo, error) {
	rec, err := s.readable(ctx, account, name, now)
	return rec.MediaInfo, s.report("look up media", err)
}

// readable returns the record of an object that can be read at the time now,
// or ErrNotFound. The context of a reader may last for hours.
func (s *Store) readable(ctx context.Context, account, name string, now time.Time) (mediaRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, mediaTimeout)
	defer cancel()
	rec, _, err := read[mediaRecord](ctx, s.media.names, mediaKey(account, name))
	if err == nil && rec.expired(now) {
		return mediaRecord{}, ErrNotFound
	}
	return rec, err
}
