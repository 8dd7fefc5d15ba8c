package store

import (
	"context"
	"errors"
	"time"
)

// MaxQuota is the largest stream quota of an account: as many streams as one
// record can list.
const MaxQuota = 8192

// quotaGrace is how long a stream that has not begun yet uses the quota, by
// clocks that may differ.
const quotaGrace = time.Minute

// openStreams are the streams that use an account's quota over all nodes, and since
// when.
type openStreams map[string]time.Time

// ErrQuota is an account whose quota of streams or of waiting jobs is used up.
var ErrQuota = errors.New("the quota of the account is used up")

// AcquireStream adds a stream to the open streams of an account, if there are fewer
// than limit, at most MaxQuota; else it returns ErrQuota. For a stream that is among
// them already it changes nothing: it counts once, however many requests try to open it,
// and only the node that runs it releases it.
func (s *Store) AcquireStream(ctx context.Context, account, stream string, now time.Time, limit int) error {
	return s.report("acquire stream", s.changeQuota(ctx, account, func(ctx context.Context, open openStreams) (bool, error) {
		if _, ok := open[stream]; ok {
			return false, nil
		}
		err := s.makeRoom(ctx, open, now, limit)
		open[stream] = now.UTC()
		return true, err
	}))
}

// ReleaseStream removes a stream from the open streams of an account. One that is not
// removed no longer counts once it is over.
func (s *Store) ReleaseStream(ctx context.Context, account, stream string) error {
	return s.report("release stream", s.changeQuota(ctx, account, func(_ context.Context, open openStreams) (bool, error) {
		_, ok := open[stream]
		delete(open, stream)
		return ok, nil
	}))
}

// StreamAvailable returns ErrQuota unless an account has fewer than limit open streams.
func (s *Store) StreamAvailable(ctx context.Context, account string, now time.Time, limit int) error {
	return s.report("read stream quota", s.changeQuota(ctx, account, func(ctx context.Context, open openStreams) (bool, error) {
		before := len(open)
		err := s.makeRoom(ctx, open, now, limit)
		return len(open) != before, err
	}))
}

// makeRoom returns ErrQuota unless there are fewer than limit open streams, without those
// that are over: their node died, or could not release them. It reads the record of each
// stream, so it looks for these only when the quota is used up.
func (s *Store) makeRoom(ctx context.Context, open openStreams, now time.Time, limit int) error {
	if len(open) < limit {
		return nil
	}
	for id, since := range open {
		rec, _, err := read[Stream](ctx, s.streams, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err != nil || rec.Status.Over() || rec.Status == Created && now.Sub(since) > quotaGrace {
			delete(open, id)
		}
	}
	if len(open) >= limit {
		return ErrQuota
	}
	return nil
}

// changeQuota applies step to the open streams of an account, which reports
// whether it changed them. A node alone, whose store is not shared, needs no quotas: it
// counts what is open.
func (s *Store) changeQuota(ctx context.Context, account string, step func(context.Context, openStreams) (bool, error)) error {
	if s.quotas.kv == nil {
		return nil
	}
	return change(ctx, s.quotas, hashOf(account), func(ctx context.Context, open *openStreams, exists bool) (bool, error) {
		if !exists {
			*open = openStreams{}
		}
		return step(ctx, *open)
	})
}
