package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// chunksOnTheWay is how many chunks of a write wait for the store at once;
	// with one that is being filled they are all the memory of a write.
	chunksOnTheWay = 3
	// mediaTimeout bounds one step of a write.
	mediaTimeout = 10 * time.Second
)

// MediaWriter writes one object. Only one goroutine uses it, and ends it with
// Commit or Abort.
type MediaWriter struct {
	store  *Store
	ctx    context.Context
	now    func() time.Time
	key    string // of the record
	object string

	lease   uint64 // revision of the row's entry
	renewed time.Time

	buf    []byte
	spare  [][]byte
	flight []chunkOnTheWay
	n      int64 // chunks that have left
	size   int64
	sum    hash.Hash
	err    error // the first failure; nothing is written after it
	// settled is a write that is not the writer's to take back: it is
	// committed, or nobody knows whether it is.
	settled bool
}

type chunkOnTheWay struct {
	ack jetstream.PubAckFuture
	buf []byte
}

// CreateMedia begins to write an object. ctx bounds the writing.
func (s *Store) CreateMedia(ctx context.Context, account, name string, now func() time.Time) (*MediaWriter, error) {
	w := &MediaWriter{store: s, ctx: ctx, now: now, key: mediaKey(account, name),
		object: uuid.NewString(), sum: sha256.New()}
	if err := w.renew(); err != nil {
		return nil, wrap("begin media", storeError(err))
	}
	return w, nil
}

// renew says that the writer is alive.
func (w *MediaWriter) renew() error {
	now := w.now()
	raw, err := json.Marshal(looseRow{Name: w.key, Until: now.Add(uploadLease)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.ctx, mediaTimeout)
	defer cancel()
	if w.lease, err = w.store.media.names.Update(ctx, loosePrefix+w.object, raw, w.lease); err != nil {
		return err
	}
	w.renewed = now
	return nil
}

// Write takes the next bytes. It waits while too much is on the way.
func (w *MediaWriter) Write(p []byte) (int, error) {
	taken := 0
	for len(p) > 0 && w.err == nil {
		if w.buf == nil {
			w.buf = w.empty()
		}
		n := copy(w.buf[len(w.buf):mediaChunk], p)
		w.buf = w.buf[:len(w.buf)+n]
		p, taken = p[n:], taken+n
		if len(w.buf) == mediaChunk {
			w.send()
		}
	}
	return taken, w.err
}

func (w *MediaWriter) empty() []byte {
	if n := len(w.spare); n > 0 {
		buf := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return buf[:0]
	}
	return make([]byte, 0, mediaChunk)
}

// send lets the chunk that is being filled go.
func (w *MediaWriter) send() {
	if w.now().Sub(w.renewed) > uploadLease/5 {
		if w.err = w.renew(); w.err != nil {
			return
		}
	}
	_, _ = w.sum.Write(w.buf) // never fails
	w.size += int64(len(w.buf))
	ack, err := w.store.js.PublishAsync(chunkSubject(w.object, w.n), w.buf)
	if err != nil {
		w.err = err
		return
	}
	w.flight = append(w.flight, chunkOnTheWay{ack, w.buf})
	w.n++
	w.buf = nil
	w.land(chunksOnTheWay)
}

// land waits until no more than some chunks are on the way.
func (w *MediaWriter) land(most int) {
	for len(w.flight) > most && w.err == nil {
		first := w.flight[0]
		timeout := time.NewTimer(mediaTimeout)
		select {
		case <-first.ack.Ok():
			w.spare = append(w.spare, first.buf)
		case err := <-first.ack.Err():
			w.err = storeError(err)
		case <-w.ctx.Done():
			w.err = context.Cause(w.ctx)
		case <-timeout.C:
			w.err = errors.New("the store does not answer")
		}
		timeout.Stop()
		w.flight = w.flight[1:]
	}
}

// Commit makes what was written the object of its name, with prefix before
// it. After an error the earlier object is still there, and Abort cleans up.
func (w *MediaWriter) Commit(prefix []byte) (MediaInfo, error) {
	if len(w.buf) > 0 && w.err == nil {
		w.send()
	}
	w.land(0)
	if w.err == nil {
		// From here the row is safe from the sweep for long enough.
		w.err = w.renew()
	}
	if w.err != nil {
		return MediaInfo{}, wrap("write media", w.err)
	}
	_, _ = w.sum.Write(prefix)
	rec := mediaRecord{Object: w.object, Prefix: prefix, Size: w.size + int64(len(prefix)),
		Sum: hex.EncodeToString(w.sum.Sum(nil)), Written: w.now().UTC()}
	ctx, cancel := context.WithTimeout(w.ctx, mediaTimeout)
	defer cancel()
	w.settled = true
	if w.err = w.swap(ctx, rec); w.err != nil {
		return MediaInfo{}, wrap("write media", storeError(w.err))
	}
	// The record protects the row now; a sweep would find that out as well.
	// Only in our revision: who has replaced the object by now has written one.
	_ = w.store.media.names.Purge(ctx, loosePrefix+w.object, jetstream.LastRevision(w.lease))
	return rec.info(), nil
}

// swap makes rec the record of the name, whatever other writers do meanwhile:
// the last one wins, and every row that was replaced has its entry before it
// loses its record.
func (w *MediaWriter) swap(ctx context.Context, rec mediaRecord) error {
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	for {
		old, revision, err := w.store.mediaRecord(ctx, w.key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err == nil {
			row, err := json.Marshal(looseRow{Name: w.key, Until: w.now().Add(readGrace)})
			if err != nil {
				return err
			}
			if _, err := w.store.media.names.Put(ctx, loosePrefix+old.Object, row); err != nil {
				return err
			}
		}
		_, err = w.store.media.names.Update(ctx, w.key, raw, revision)
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return err
		}
	}
}

// Abort gives up what was written. After a Commit that succeeded it does
// nothing; nor after one whose success is not known: the sweep will see.
func (w *MediaWriter) Abort() {
	if w.settled {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), mediaTimeout)
	defer cancel()
	w.ctx = ctx
	for len(w.flight) > 0 && ctx.Err() == nil {
		w.err = nil
		w.land(0) // to the next refusal; what lands after the purge would stay
	}
	// If any of this fails, the sweep has the entry to go by.
	if w.store.dropRow(ctx, w.object) == nil {
		_ = w.store.media.names.Purge(ctx, loosePrefix+w.object)
	}
}

// storeError tells a store without room from other troubles.
func storeError(err error) error {
	if Full(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
