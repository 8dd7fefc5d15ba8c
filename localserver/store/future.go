package store

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// SweepFuture removes entries of the future. A clock that was wrong and was set back leaves
// such entries, and a NATS server, which looks at the oldest entry only, removes nothing until
// their time has come. They are older than the first entry behind them: when that has expired,
// they have, too. The NATS server removes it with the others, at the latest MaxAge later.
func (s *Store) SweepFuture(ctx context.Context, now time.Time) error {
	var errs []error
	for _, k := range s.kinds {
		if k.MaxAge > 0 {
			errs = append(errs, sweepFuture(ctx, k.to, now))
		}
	}
	return s.report("remove expired entries", errors.Join(errs...))
}

func sweepFuture(ctx context.Context, stream jetstream.Stream, now time.Time) error {
	info, err := stream.Info(ctx)
	if err != nil || info.State.Msgs == 0 || !info.State.FirstTime.After(now) {
		return err
	}
	first, next := info.State.FirstSeq, info.State.LastSeq+1 // next is the first entry behind those of the future
	var age time.Duration                                    // of next
	sort.Search(int(next-first), func(i int) bool {
		msg, failed := stream.GetMsg(ctx, first+uint64(i), jetstream.WithGetMsgSubject(">")) // or the next one
		if errors.Is(failed, jetstream.ErrMsgNotFound) {
			return true
		}
		if failed != nil {
			err = failed
			return true
		}
		if msg.Time.After(now) {
			return false
		}
		next, age = msg.Sequence, now.Sub(msg.Time)
		return true
	})
	if err != nil || age < info.Config.MaxAge {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSequence(next))
}
