package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"hubbub/protocol/hint"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// clusterReplicas is the number of NATS servers that hold each message: one
	// may fail or be partitioned, and nothing that was acknowledged is lost.
	clusterReplicas = 3
	// A server that does not respond to two pings is given up, and the next one is
	// tried: well within the timeout of a lease.
	clusterPing   = time.Second
	clusterDial   = 2 * time.Second
	clusterRedial = 200 * time.Millisecond
)

// connect connects to the NATS servers at these addresses, "" for the embedded one. It
// logs failure with later errors of the connection.
func (s *Store) connect(addresses, failure string, options ...nats.Option) (err error) {
	s.conn, err = nats.Connect(addresses, append(options, nats.Name("hubbub"), nats.MaxReconnects(-1),
		// What cannot be sent now fails now: a write that is sent after its
		// caller has given up would be worse.
		nats.ReconnectBufSize(-1), nats.ClosedHandler(s.closed),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.log.Warn(failure, "error", err) }))...)
	if err == nil {
		s.js, err = jetstream.New(s.conn)
	}
	return err
}

// connectCluster connects to the NATS servers at o.URL.
func (s *Store) connectCluster(o Options) error {
	err := s.connect(o.URL, "error of the NATS connection",
		nats.Timeout(clusterDial), nats.PingInterval(clusterPing), nats.MaxPingsOutstanding(2),
		nats.ReconnectWait(clusterRedial), nats.ReconnectJitter(clusterRedial, clusterRedial),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil when it was closed on purpose
				s.log.Warn("the connection to the NATS cluster was lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { s.log.Info("reconnected to the NATS cluster", "server", c.ConnectedServerName()) }),
	)
	if err != nil {
		if _, parse := errors.AsType[*url.Error](err); parse {
			err = errors.New("an address cannot be read") // the error repeats it
		}
		err = hint.Add(fmt.Errorf("the NATS cluster at %s cannot be reached: %w", redact(o.URL), err),
			"Check that its servers run, and that the address and the credentials are right.")
	}
	return err
}

// redact removes the credentials from a list of addresses.
func redact(addresses string) string {
	var redacted []string
	for a := range strings.SplitSeq(addresses, ",") {
		a = strings.TrimSpace(a)
		if !strings.Contains(a, "://") {
			a = "nats://" + a // as the NATS client does
		}
		u, err := url.Parse(a)
		if err != nil {
			redacted = append(redacted, "(an address that cannot be read)")
			continue
		}
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		redacted = append(redacted, u.String())
	}
	return strings.Join(redacted, ",")
}

// openCluster connects to a NATS cluster, which may be starting or electing its
// leaders, and sets up the store there.
func (s *Store) openCluster(ctx context.Context, o Options) error {
	s.replicas = clusterReplicas
	if err := s.connectCluster(o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, attemptTimeout)
		err := s.setUp(attempt, jetstream.FileStorage)
		done()
		switch {
		case err == nil:
			return nil
		case hasCode(err, codeNoReplicas):
			s.replicas = 1
			s.log.Warn("the NATS server is not in a cluster: everything is stored once, and is lost with its disk", "server", s.conn.ConnectedServerName())
			continue
		}
		select {
		case <-ctx.Done():
			return hint.Add(fmt.Errorf("the store could not be set up on the NATS cluster: %w", err),
				fmt.Sprintf("The cluster needs JetStream, and %d servers that are up.", clusterReplicas))

		case <-time.After(clusterRedial):
		}
	}
}
