package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// leaseTTL forgets nodes that are long gone. How soon a lease counts as lost
// is for those who watch it.
const leaseTTL = time.Hour

// Leases tell the nodes of a cluster which of them are alive. There are no
// times in them, because clocks differ: a node that lives makes its mark again
// and again, and the others see that it changes.
type Leases interface {
	// Hold makes a node's mark.
	Hold(ctx context.Context, node string) error
	// Release takes it away: the node has nothing left that others would have
	// to end.
	Release(ctx context.Context, node string) error
	// Holders returns a number for each node with a mark; it changes whenever
	// the mark is made.
	Holders(ctx context.Context) (map[string]uint64, error)
}

var _ Leases = (*Store)(nil)

func (s *Store) layOutLeases(ctx context.Context, _ jetstream.StorageType) (err error) {
	// Marks are made every second or so: never on a disk.
	s.leases, err = s.bucket(ctx, jetstream.KeyValueConfig{
		Bucket: "leases", Storage: jetstream.MemoryStorage, TTL: leaseTTL, MaxValueSize: 1 << 10,
	})
	if err != nil {
		return err
	}
	s.leaseStream, err = s.js.Stream(ctx, "KV_leases")
	return err
}

// Shared tells whether other nodes may use this store.
func (s *Store) Shared() bool { return s.server == nil }

// Hold makes a node's mark.
func (s *Store) Hold(ctx context.Context, node string) error {
	_, err := s.leases.Put(ctx, node, nil)
	return wrap("hold lease", err)
}

// Release takes it away.
func (s *Store) Release(ctx context.Context, node string) error {
	return wrap("release lease", s.leases.Purge(ctx, node))
}

// Holders returns the revision of each node's mark.
func (s *Store) Holders(ctx context.Context) (map[string]uint64, error) {
	const prefix = "$KV.leases."
	info, err := s.leaseStream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, wrap("read leases", err)
	}
	holders := map[string]uint64{}
	for subject := range info.State.Subjects {
		node := strings.TrimPrefix(subject, prefix)
		entry, err := s.leases.Get(ctx, node)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound): // released
		case err != nil:
			return nil, wrap("read leases", err)
		default:
			holders[node] = entry.Revision()
		}
	}
	return holders, nil
}

// Running lists the sessions that run on nodes for which dead says so.
func (s *Store) Running(ctx context.Context, dead func(node string) bool) ([]Session, error) {
	return s.list(ctx, func(rec Session) bool { return rec.Status == Running && dead(rec.Node) })
}

// list returns the records that fit.
func (s *Store) list(ctx context.Context, fits func(Session) bool) ([]Session, error) {
	watch, err := s.sessions.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, wrap("list sessions", err)
	}
	defer func() { _ = watch.Stop() }()
	var found []Session
	for {
		select {
		case <-ctx.Done():
			return nil, wrap("list sessions", ctx.Err())
		case entry, ok := <-watch.Updates():
			if !ok {
				return nil, errors.New("list sessions: the store went away")
			}
			if entry == nil { // everything that was there has been seen
				return found, nil
			}
			rec, err := parseSession(entry.Key(), entry.Value())
			if err != nil {
				return nil, err
			}
			if fits(rec) {
				found = append(found, rec)
			}
		}
	}
}
