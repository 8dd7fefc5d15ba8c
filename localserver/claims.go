package localserver

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/store"
)

const (
	// openTimeout is how long a handshake waits for the store: about as long as
	// a NATS cluster that lost a server takes to elect its leaders.
	openTimeout = 10 * time.Second
	// withdrawInterval is how often claims of unknown outcome are withdrawn.
	withdrawInterval = time.Second
	// maxUnknown bounds the claims of unknown outcome; the token of one beyond
	// it may be lost.
	maxUnknown = 10000
)

// claims makes sure that one request at a time on this node claims the token of
// a stream, and that no token is lost by a claim whose outcome is unknown: the
// next request makes the same claim again, and if there is none the claim is
// withdrawn.
//
// Other nodes do not know of such a claim. For them the token is used until it
// is withdrawn, a second after the store is back.
type claims struct {
	log *slog.Logger

	mu      sync.Mutex
	busy    map[string]chan struct{} // by stream; closed when the request is done
	unknown map[string]string        // attempts of unknown outcome, by stream
}

func newClaims(log *slog.Logger) *claims {
	return &claims{log: log, busy: map[string]chan struct{}{}, unknown: map[string]string{}}
}

// lock waits until no other request on this node claims or withdraws the
// stream; unlock must follow.
func (c *claims) lock(ctx context.Context, id string) error {
	for {
		c.mu.Lock()
		done, taken := c.busy[id]
		if !taken {
			c.busy[id] = make(chan struct{})
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *claims) unlock(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.busy[id])
	delete(c.busy, id)
}

// attempt returns the attempt of unknown outcome, if there is one.
func (c *claims) attempt(id string) (attempt string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	attempt, ok = c.unknown[id]
	return attempt, ok
}

// remember notes that the outcome of an attempt is unknown.
func (c *claims) remember(id, attempt string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.unknown[id]; !known && len(c.unknown) >= maxUnknown {
		c.log.Error("a token may be lost: too many claims of unknown outcome", "stream", id)
		return
	}
	c.unknown[id] = attempt
}

// forget notes that the outcome of an attempt is known.
func (c *claims) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unknown, id)
}

// list returns the streams with an attempt of unknown outcome.
func (c *claims) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.unknown))
}

// claim uses up the token of a stream and makes it a running one of this
// node.
func (s *Server) claim(ctx context.Context, id, token string, now time.Time) error {
	if err := s.claims.lock(ctx, id); err != nil {
		return err
	}
	defer s.claims.unlock(id)
	attempt, ok := s.claims.attempt(id)
	if !ok {
		attempt = uuid.NewString()
	}
	err := s.records.Begin(ctx, id, token, store.Claim{Node: s.node, Attempt: attempt}, now)
	switch {
	case err == nil:
		s.claims.forget(id)
	case store.Unknown(err):
		s.claims.remember(id, attempt)
	}
	// Any other error says nothing about an earlier attempt of unknown outcome:
	// it may be about the token of this request.
	return err
}

// withdrawClaims withdraws the claims of unknown outcome.
func (s *Server) withdrawClaims(ctx context.Context) error {
	for _, id := range s.claims.list() {
		s.withdrawClaim(ctx, id)
	}
	return nil
}

func (s *Server) withdrawClaim(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if s.claims.lock(ctx, id) != nil {
		return
	}
	defer s.claims.unlock(id)
	attempt, ok := s.claims.attempt(id)
	if !ok { // a request has succeeded meanwhile
		return
	}
	if err := s.records.Withdraw(ctx, id, attempt); err != nil && store.Unknown(err) {
		return
	}
	s.claims.forget(id)
	s.log.Info("a claim was withdrawn; its token is valid again", "stream", id)
}
