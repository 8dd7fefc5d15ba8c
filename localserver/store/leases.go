package store

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// leaseTTL removes the leases of nodes that are long gone. When a lease counts
// as lost is decided by the nodes that monitor it.
const leaseTTL = time.Hour

// Hold renews a node's lease. Leases tell the nodes of a cluster which of them are alive.
// They contain no times, because clocks differ: a live node renews its lease again and
// again, and the others see the revision change.
func (s *Store) Hold(ctx context.Context, node string) error {
	return wrap("hold lease", s.leases.Put(ctx, node, nil))
}

// Release removes a node's lease: it has left nothing that others would have to end.
func (s *Store) Release(ctx context.Context, node string) error {
	return wrap("release lease", s.leases.Purge(ctx, node))
}

// Holders returns the revision of each node's lease; it changes whenever the lease is
// renewed.
func (s *Store) Holders(ctx context.Context) (map[string]uint64, error) {
	holders := map[string]uint64{}
	err := s.leases.each(ctx, []string{">"}, func(lease jetstream.KeyValueEntry) error {
		holders[lease.Key()] = lease.Revision()
		return nil
	})
	return holders, wrap("read leases", err)
}
