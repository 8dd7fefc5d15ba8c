package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"time"

	"github.com/google/uuid"
)

const (
	// mediaTimeout bounds one step of a write.
	mediaTimeout = 10 * time.Second
)

// MediaWriter writes one object. It is used by one goroutine only, which ends
// it with Commit or Abort.
type MediaWriter struct {
	store *Store
	ctx   context.Context
	now   func() time.Time
	name  string
	key   string // of the record
	entry string // key of the blob's entry
	blob  string

	lease    uint64 // revision of the blob's entry
	renewed  time.Time
	admitted int64 // bytes, within the account's quota

	buf  []byte // the chunk that is being filled
	size int64  // bytes that were stored
	sum  hash.Hash
	err  error // the first failure; nothing is written after it
	// committed is a write that Abort must not undo: it is committed, or its
	// outcome is unknown.
	committed bool
	permit    string // "" = none
}

// CreateMedia begins to write an object. ctx bounds the writing.
func (s *Store) CreateMedia(ctx context.Context, account, name string, now func() time.Time) (*MediaWriter, error) {
	if err := s.admit(ctx, 0, forMedia); err != nil {
		return nil, s.report("create media", err)
	}
	w := &MediaWriter{store: s, ctx: ctx, now: now, name: name, key: mediaKey(account, name),
		blob: uuid.NewString(), buf: make([]byte, 0, mediaChunk), sum: sha256.New()}
	w.entry = entryKey(w.key, w.blob)
	if err := w.renew(0); err != nil {
		return nil, s.report("create media", err)
	}
	return w, nil
}

// renew keeps the blob from being swept, and asks for more bytes.
func (w *MediaWriter) renew(ask int64) (err error) {
	now := w.now()
	ctx, cancel := context.WithTimeout(w.ctx, mediaTimeout)
	defer cancel()
	entry := encode(unreferenced{Name: w.key, Until: now.Add(writeLease), Size: w.admitted, Ask: ask})
	if w.lease, err = w.store.media.names.write(ctx, w.entry, entry, w.lease); err != nil {
		return err
	}
	w.renewed = now
	return nil
}

// Write takes the next bytes. It waits until the store has every full chunk of them.
func (w *MediaWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && w.err == nil {
		n := copy(w.buf[len(w.buf):mediaChunk], p)
		w.buf = w.buf[:len(w.buf)+n]
		p, written = p[n:], written+n
		if len(w.buf) == mediaChunk {
			w.err = w.flush()
		}
	}
	return written, w.err
}

// flush stores the chunk that is being filled.
func (w *MediaWriter) flush() error {
	n := int64(len(w.buf))
	if w.now().Sub(w.renewed) > writeLease/5 {
		if err := w.renew(0); err != nil {
			return err
		}
	}
	if err := w.store.admit(w.ctx, n, forMedia); err != nil {
		return err
	}
	if err := w.grow(n); err != nil {
		return err
	}
	// Also after w.ctx has ended: a chunk that is in flight then could arrive after Abort
	// has deleted the blob, and would remain.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), mediaTimeout)
	defer cancel()
	if _, err := w.store.publish(ctx, chunkSubject(w.blob, w.size/mediaChunk), w.buf); err != nil {
		return err
	}
	_, _ = w.sum.Write(w.buf) // never fails
	w.size += n
	w.buf = w.buf[:0]
	return w.ctx.Err()
}

// Commit makes what was written, after prefix, the object of its name. After
// an error the earlier object remains, and Abort removes the blob. With ErrUsed it also
// says what was written.
func (w *MediaWriter) Commit(prefix []byte) (MediaInfo, error) {
	if len(w.buf) > 0 && w.err == nil {
		w.err = w.flush()
	}
	if w.err == nil {
		w.err = w.grow(int64(len(prefix)))
	}
	if w.err == nil {
		// From here on the commit takes less time than the entry protects the blob.
		w.admitted = w.size + int64(len(prefix))
		w.err = w.renew(0)
	}
	if w.err != nil {
		return MediaInfo{}, wrap("write media", w.err)
	}
	_, _ = w.sum.Write(prefix)
	rec := mediaRecord{MediaInfo{w.name, w.size + int64(len(prefix)), hex.EncodeToString(w.sum.Sum(nil)), w.now().UTC()}, w.blob, prefix}
	ctx, cancel := context.WithTimeout(w.ctx, mediaTimeout)
	defer cancel()
	if w.err = w.claim(ctx); w.err != nil {
		return rec.MediaInfo, wrap("write media", w.err)
	}
	w.committed = true
	w.err = w.replaceRecord(ctx, rec)
	w.finishPermit(ctx, w.err == nil)
	if w.err != nil {
		return MediaInfo{}, wrap("write media", w.err)
	}
	// The record protects the blob now. Only up to our own revision: a writer that
	// has replaced the object meanwhile has written another one.
	_ = w.store.media.names.remove(ctx, w.entry, w.lease)
	return rec.MediaInfo, nil
}

// ErrUsed is a permit that another write has used up.
var ErrUsed = errors.New("the permit is used up")

// Bind binds the write to a permit, an element of a key, that allows one
// commit: of all writes with the same permit one succeeds, and the others
// return ErrUsed.
func (w *MediaWriter) Bind(permit string) { w.permit = permit }

// permit is the state of a permit: it is claimed before the record is replaced, and used
// up afterwards.
type permit struct {
	Blob string    `json:"blob"` // of the writer that has claimed it
	At   time.Time `json:"at"`
	Used bool      `json:"used,omitempty"`
}

// claim claims the permit. A writer that finds it claimed waits until it is
// used up; a claim that is older than a commit can take has failed, and is
// taken over.
func (w *MediaWriter) claim(ctx context.Context) error {
	if w.permit == "" {
		return nil
	}
	return change(ctx, w.store.media.names, permitPrefix+w.permit, func(_ context.Context, p *permit, claimed bool) (bool, error) {
		switch {
		case p.Used:
			return false, ErrUsed
		case claimed && p.Blob != w.blob && time.Since(p.At) <= 2*mediaTimeout:
			return false, errRetry
		}
		p.Blob, p.At = w.blob, time.Now()
		return true, nil
	})
}

// finishPermit uses the permit up, or gives it back after a commit that failed.
func (w *MediaWriter) finishPermit(ctx context.Context, committed bool) {
	if w.permit == "" {
		return
	}
	var err error
	if committed {
		err = change(ctx, w.store.media.names, permitPrefix+w.permit, func(_ context.Context, p *permit, _ bool) (bool, error) {
			p.Used = true
			return true, nil
		})
	} else {
		err = w.store.media.names.remove(ctx, permitPrefix+w.permit, 0)
	}
	// A claim that remains is taken over by the next write.
	_ = w.store.report("finish permit", err)
}

// MediaUsed reports whether a write that was bound to a permit is committed.
func (s *Store) MediaUsed(ctx context.Context, id string) (bool, error) {
	p, revision, err := read[permit](ctx, s.media.names, permitPrefix+id)
	if errors.Is(err, ErrNotFound) {
		return revision > 0, nil // one that cannot be read may be used up
	}
	return p.Used, s.report("look up permit", err)
}

// errReplaced is a record that was written and then replaced or deleted.
var errReplaced = errors.New("the object was replaced")

// replaceRecord makes rec the record of the name. Of concurrent writers the
// last one wins.
func (w *MediaWriter) replaceRecord(ctx context.Context, rec mediaRecord) error {
	names := w.store.media.names
	err := w.store.changeRecord(ctx, w.key, w.now(), nil, func(revision uint64) error {
		_, err := names.write(ctx, w.key, encode(rec), revision)
		if errors.Is(err, ErrConflict) {
			// Who replaces or deletes an object writes the entry of its blob first. If it was ours, an attempt
			// whose response was lost was carried out, and another one would refer to a blob that is gone.
			_, lease, failed := read[unreferenced](ctx, names, w.entry)
			if lease != w.lease && (failed == nil || errors.Is(failed, ErrNotFound)) {
				return errReplaced
			}
		}
		return err
	})
	if errors.Is(err, errReplaced) {
		err = nil
	}
	return err
}

// Abort discards what was written. After a Commit that succeeded, or whose
// outcome is unknown, it does nothing, and the sweep decides.
func (w *MediaWriter) Abort() {
	if w.committed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), mediaTimeout)
	defer cancel()
	// If any of this fails, the sweep has the entry.
	if w.store.deleteBlob(ctx, w.blob) == nil {
		_ = w.store.media.names.remove(ctx, w.entry, 0)
	}
}
