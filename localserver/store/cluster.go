package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// clusterReplicas is on how many NATS servers everything is kept: one may
	// die, or be cut off, and nothing that was acknowledged is lost.
	clusterReplicas = 3
	// A server that is frozen or cut off is given up after two unanswered
	// pings, and the next one is tried: well within the life of a lease.
	clusterPing    = time.Second
	clusterDial    = 2 * time.Second
	clusterRedial  = 200 * time.Millisecond
	clusterAttempt = 5 * time.Second // of laying out
)

// Codes of JetStream's errors that the library has no names for.
const (
	codeNoReplicas = 10074 // replicas without a cluster
	codeNoMemory   = 10028
	codeNoRoom     = 10047
	codeNotStored  = 10077
	codeResources  = 10023
)

// join connects to the NATS servers at o.URL.
func (s *Store) join(o Options) error {
	log := o.Logger
	var err error
	s.conn, err = nats.Connect(o.URL,
		nats.Name("hubbub"), nats.Timeout(clusterDial),
		nats.PingInterval(clusterPing), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(clusterRedial), nats.ReconnectJitter(clusterRedial, clusterRedial),
		// What cannot be sent now fails now: a write that goes out after its
		// caller has given up would be worse.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { logLost(log, err) }),
		nats.ReconnectHandler(func(c *nats.Conn) { log.Info("connected to the NATS cluster again", "server", c.ConnectedServerName()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("trouble with the NATS cluster", "error", err)
		}),
	)
	if err != nil {
		return &hinted{fmt.Errorf("the NATS cluster at %s cannot be reached: %w", withoutSecrets(o.URL), err),
			"Check that its servers run, and that the address and the credentials are right."}
	}
	s.js, err = jetstream.New(s.conn)
	return err
}

func logLost(log *slog.Logger, err error) {
	if err != nil { // nil when it was closed on purpose
		log.Warn("the connection to the NATS cluster was lost", "error", err)
	}
}

// withoutSecrets is a list of addresses as people may see it.
func withoutSecrets(addresses string) string {
	var shown []string
	for _, a := range strings.Split(addresses, ",") {
		u, err := url.Parse(strings.TrimSpace(a))
		if err != nil {
			shown = append(shown, "(an address that cannot be read)")
			continue
		}
		u.User = nil
		shown = append(shown, u.String())
	}
	return strings.Join(shown, ",")
}

// layOutCluster lays out on a cluster, which may be starting as well, or
// choosing its leaders.
func (s *Store) layOutCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, clusterAttempt)
		err := s.layOut(attempt, jetstream.FileStorage)
		done()
		switch {
		case err == nil:
			return nil
		case hasCode(err, codeNoReplicas):
			s.replicas = 1 // a single server, on its operator's responsibility
			continue
		}
		select {
		case <-ctx.Done():
			return &hinted{fmt.Errorf("the store could not be laid out on the NATS cluster: %w", err),
				fmt.Sprintf("The cluster needs JetStream, and %d servers that are up.", clusterReplicas)}
		case <-time.After(clusterRedial):
		}
	}
}

// bucket makes a key-value bucket, or finds it, with as many replicas as the
// store has. With several, reads go to their leader: another one may be behind,
// and then a record that was just acknowledged would seem not to be there.
func (s *Store) bucket(ctx context.Context, c jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	if s.replicas == 1 {
		c.Replicas = 1
		return s.js.CreateOrUpdateKeyValue(ctx, c)
	}
	// CreateOrUpdateKeyValue knows no bucket without direct reads.
	_, err := s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "KV_" + c.Bucket, Subjects: []string{"$KV." + c.Bucket + ".>"},
		Storage: c.Storage, Replicas: s.replicas, MaxAge: c.TTL,
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: -1, MaxConsumers: -1, MaxMsgSize: c.MaxValueSize,
		Discard: jetstream.DiscardNew, AllowRollup: true, DenyDelete: true, AllowDirect: false,
	})
	if err != nil {
		return nil, err
	}
	return s.js.KeyValue(ctx, c.Bucket)
}

// hasCode tells whether an error of JetStream has one of some codes.
func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	for _, c := range codes {
		if api.ErrorCode == c {
			return true
		}
	}
	return false
}

// conflicts tells whether a write was refused because another one came first.
// A replicated stream says so in another code than a single one.
func conflicts(err error) bool {
	return hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// noted remembers whether the store takes writes, from the outcome of one, and
// passes the outcome on.
func (s *Store) noted(err error) error {
	switch {
	case err == nil || conflicts(err): // it could have written
		s.troubled.Store(false)
	case errors.Is(err, context.Canceled): // says nothing of the store
	default:
		s.troubled.Store(true)
	}
	return err
}

// probe is a name that no secret has.
const probe = "probe"

// Ping asks the store for a sign of life. A store that has refused a write,
// because it is full or has no leader, is asked for another one.
func (s *Store) Ping(ctx context.Context) error {
	if s.troubled.Load() {
		_, err := s.secrets.Put(ctx, probe, nil)
		return wrap("write to the store", s.noted(err))
	}
	_, err := s.js.AccountInfo(ctx)
	return err
}

// Full tells whether an error says that there is no room.
func Full(err error) bool {
	return hasCode(err, codeNoMemory, codeNoRoom, codeNotStored, codeResources)
}
