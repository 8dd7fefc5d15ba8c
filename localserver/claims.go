package localserver

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/store"
)

const (
	// openTimeout is how long a handshake waits for the store: about as long as
	// a NATS cluster that lost a server takes to elect its leaders.
	openTimeout = 10 * time.Second
	// withdrawInterval is the pause after a panic in the withdrawal of claims.
	withdrawInterval = time.Second
	// maxUnknown bounds the claims of unknown outcome; the token of one beyond
	// it may be lost.
	maxUnknown = 10000
)

// claims makes sure that one request at a time on this node claims the token of
// a stream, and that no token is lost by a claim whose outcome is unknown: it is
// withdrawn, and the next request waits for that.
//
// Other nodes do not know of such a claim. For them the token is used until it
// is withdrawn, as soon as the store is back.
type claims struct {
	mu      sync.Mutex
	locks   map[string]chan struct{} // by stream; closed when the claim is known or withdrawn
	unknown chan unknownClaim        // locked, to be withdrawn
}

type unknownClaim struct{ stream, attempt string }

func newClaims() *claims {
	return &claims{locks: map[string]chan struct{}{}, unknown: make(chan unknownClaim, maxUnknown)}
}

// lock waits until no other request on this node claims the stream and no claim is
// withdrawn; unlock must follow.
func (c *claims) lock(ctx context.Context, id string) error {
	for {
		c.mu.Lock()
		done, taken := c.locks[id]
		if !taken {
			c.locks[id] = make(chan struct{})
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
	close(c.locks[id])
	delete(c.locks, id)
}

// locked reports whether a claim is not known or not withdrawn yet.
func (c *claims) locked(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.locks[id] != nil
}

// claim makes an attempt to begin a stream, when no other request on this node makes one.
func (s *Server) claim(ctx context.Context, id string, begin func(attempt string) error) error {
	if err := s.claims.lock(ctx, id); err != nil {
		return err
	}
	attempt := uuid.NewString()
	unlock := true
	defer func() {
		if unlock {
			s.claims.unlock(id)
		}
	}()
	err := begin(attempt)
	if store.Unknown(err) {
		select {
		case s.claims.unknown <- unknownClaim{id, attempt}:
			unlock = false
		default:
			s.log.Error("a token may be lost: too many claims of unknown outcome", "stream", id)
		}
	}
	return err
}

// withdrawClaims withdraws the claims of unknown outcome until ctx ends.
func (s *Server) withdrawClaims(ctx context.Context) error {
	for {
		select {
		case c := <-s.claims.unknown:
			s.withdrawClaim(ctx, c)
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Server) withdrawClaim(ctx context.Context, c unknownClaim) {
	defer s.claims.unlock(c.stream)
	if err := s.records.Withdraw(ctx, c.stream, c.attempt); err != nil {
		s.log.Warn("a claim could not be withdrawn; its token may be lost", "stream", c.stream, "error", err)
		return
	}
	s.log.Info("a claim was withdrawn; its token is valid again", "stream", c.stream)
}
