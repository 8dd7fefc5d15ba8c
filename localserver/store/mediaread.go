package store

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
)

// errMissing is a chunk that must exist, but is not found: a leader that was just elected
// may be behind.
var errMissing = errors.New("a chunk is missing")

// MediaReader reads one object, from any offset. It holds one chunk in memory.
type MediaReader struct {
	mediaRecord
	io.ReadSeeker // over ReadAt
	store         *Store
	ctx           context.Context
	key           string // of the record
	mark          string // subject of the reader on a cluster, "" otherwise

	chunk int64 // number of the chunk in data, -1 = none
	data  []byte
}

// OpenMedia opens an object that can be read at the time now, or returns ErrNotFound.
// ctx bounds all of the reading. The reader must be closed.
func (s *Store) OpenMedia(ctx context.Context, account, name string, now time.Time) (*MediaReader, error) {
	for {
		rec, err := s.readable(ctx, account, name, now)
		if err != nil {
			return nil, s.report("open media", err)
		}
		r := &MediaReader{mediaRecord: rec, store: s, ctx: ctx, key: mediaKey(account, name), chunk: -1}
		r.ReadSeeker = io.NewSectionReader(r, 0, r.Size)
		if err := r.announce(); err != nil {
			return nil, s.report("open media", err)
		}
		// Whoever replaced the object before the reader was known may have
		// removed the blob.
		if again, err := s.readable(ctx, account, name, now); err == nil && again.Blob == rec.Blob {
			return r, nil
		}
		_ = r.Close()
	}
}

// announce makes the reader known to whoever replaces or deletes the object: in
// this process, and on a cluster by a message that exists while it reads.
func (r *MediaReader) announce() error {
	m := &r.store.media
	if r.store.Shared() {
		r.mark = subject("hubbub", "media", r.Blob+readersSuffix, uuid.NewString())
		ctx, cancel := context.WithTimeout(r.ctx, mediaTimeout)
		defer cancel()
		if _, err := r.store.publish(ctx, r.mark, nil); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers[r.Blob]++
	return nil
}

// readersSuffix is added to a blob for the subjects of its readers.
const readersSuffix = "-readers"

// hasReaders reports whether a blob is being read, here or on another node. A
// node that was killed while it read is counted as a reader; the sweep removes
// the blob then. A backup is a reader of every blob.
func (s *Store) hasReaders(ctx context.Context, blob string) bool {
	s.media.mu.Lock()
	here := s.media.readers[blob] > 0 || s.media.backups.Load() > 0
	s.media.mu.Unlock()
	if here || !s.Shared() {
		return here
	}
	info, err := s.media.chunks.Info(ctx, jetstream.WithSubjectFilter(subject("hubbub", "media", blob+readersSuffix)+".*"))
	return err != nil || len(info.State.Subjects) > 0 // perhaps
}

// Close ends the reading. The last reader of an object that was replaced or
// deleted removes its blob.
func (r *MediaReader) Close() error {
	m := &r.store.media
	m.mu.Lock()
	if m.readers[r.Blob]--; m.readers[r.Blob] == 0 {
		delete(m.readers, r.Blob)
	}
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), mediaTimeout)
	defer cancel()
	if r.mark != "" {
		if err := m.chunks.Purge(ctx, jetstream.WithPurgeSubject(r.mark)); err != nil {
			return r.store.report("close media", err)
		}
	}
	_, err := r.store.sweepBlob(ctx, entryKey(r.key, r.Blob), allExpired)
	return r.store.report("close media", err)
}

// ReadAt reads from an offset; all of p lies within the object.
func (r *MediaReader) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		at := offset + int64(n) - int64(len(r.Prefix)) // in the chunks
		if at < 0 {
			n += copy(p[n:], r.Prefix[offset+int64(n):])
			continue
		}
		if err := r.load(at / mediaChunk); err != nil {
			return n, err
		}
		n += copy(p[n:], r.data[at%mediaChunk:])
	}
	return n, nil
}

// load fetches a chunk.
func (r *MediaReader) load(n int64) error {
	if n == r.chunk {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, mediaTimeout)
	defer cancel()
	var m *jetstream.RawStreamMsg
	err := retry(ctx, func(ctx context.Context) (err error) {
		m, err = r.store.media.chunks.GetLastMsgForSubject(ctx, chunkSubject(r.Blob, n))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			err = errMissing
		}
		return err
	})
	if err != nil {
		return wrap("read media", err)
	}
	if want := min(mediaChunk, r.Size-int64(len(r.Prefix))-n*mediaChunk); int64(len(m.Data)) != want {
		return errors.New("read media: a chunk is damaged")
	}
	r.chunk, r.data = n, m.Data
	return nil
}
