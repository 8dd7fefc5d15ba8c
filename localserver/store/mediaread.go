package store

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// lateChunk is how long a chunk is looked for that must be there: a replica
// may lag behind the write that it has not seen yet.
const lateChunk = 2 * time.Second

// MediaReader reads one object, from anywhere in it. It holds one chunk.
type MediaReader struct {
	MediaInfo
	store *Store
	ctx   context.Context
	rec   mediaRecord

	offset int64
	held   int64 // number of the chunk in data, -1 = none
	data   []byte
}

var _ io.ReadSeeker = (*MediaReader)(nil)

// OpenMedia opens an object that can be read at the time now.
func (s *Store) OpenMedia(ctx context.Context, account, name string, now time.Time) (*MediaReader, error) {
	rec, _, err := s.mediaRecord(ctx, mediaKey(account, name))
	if err != nil {
		return nil, err
	}
	if now.Sub(rec.Written) >= MediaTTL {
		return nil, ErrNotFound
	}
	return &MediaReader{MediaInfo: rec.info(), store: s, ctx: ctx, rec: rec, held: -1}, nil
}

// Read reads on at the offset, across at most one chunk.
func (r *MediaReader) Read(p []byte) (int, error) {
	if r.offset >= r.rec.Size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	head := int64(len(r.rec.Prefix))
	var n int
	if r.offset < head {
		n = copy(p, r.rec.Prefix[r.offset:])
	} else {
		at := r.offset - head
		if err := r.hold(at / mediaChunk); err != nil {
			return 0, err
		}
		n = copy(p, r.data[at%mediaChunk:])
	}
	r.offset += int64(n)
	return n, nil
}

// hold fetches a chunk.
func (r *MediaReader) hold(n int64) error {
	if n == r.held {
		return nil
	}
	subject := chunkSubject(r.rec.Object, n)
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(r.ctx, mediaTimeout)
		m, err := r.store.media.chunks.GetLastMsgForSubject(ctx, subject)
		cancel()
		switch {
		case err == nil:
			if want := min(mediaChunk, r.rec.Size-int64(len(r.rec.Prefix))-n*mediaChunk); int64(len(m.Data)) != want {
				return errors.New("read media: a chunk is damaged")
			}
			r.held, r.data = n, m.Data
			return nil
		case !errors.Is(err, jetstream.ErrMsgNotFound) || time.Since(began) > lateChunk:
			return wrap("read media", err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// Seek moves the offset.
func (r *MediaReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.rec.Size
	}
	if offset < 0 {
		return 0, errors.New("read media: a position before the beginning")
	}
	r.offset = offset
	return offset, nil
}
