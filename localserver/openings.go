package localserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/store"
)

const (
	// openTimeout is how long a handshake waits for the store: about as long
	// as a NATS cluster that lost a server takes to choose its leaders.
	openTimeout = 10 * time.Second
	// withdrawEvery is how often attempts of unknown outcome are seen to.
	withdrawEvery = time.Second
	// maxUnsettled bounds their number; a token beyond it may be burnt.
	maxUnsettled = 10000
)

// openings sees to it that a stream's token is used by one request at a time
// on this node, and that none is burnt by an attempt whose outcome is not
// known: the next request makes the same attempt again, and if none comes it is
// withdrawn.
//
// Other nodes cannot know of such an attempt. To them the token is used until
// it is withdrawn, which is a second after the store is back.
type openings struct {
	log *slog.Logger

	mu        sync.Mutex
	busy      map[string]chan struct{} // by session; closed when the request is through
	unsettled map[string]string        // attempts of unknown outcome, by session
}

func newOpenings(log *slog.Logger) *openings {
	return &openings{log: log, busy: map[string]chan struct{}{}, unsettled: map[string]string{}}
}

// enter waits until nobody else on this node is about to open or withdraw the
// session; leave lets the next one in.
func (o *openings) enter(ctx context.Context, session string) error {
	for {
		o.mu.Lock()
		through, taken := o.busy[session]
		if !taken {
			o.busy[session] = make(chan struct{})
			o.mu.Unlock()
			return nil
		}
		o.mu.Unlock()
		select {
		case <-through:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *openings) leave(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.busy[session])
	delete(o.busy, session)
}

// attempt is the one of unknown outcome, or a new one.
func (o *openings) attempt(session string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a, ok := o.unsettled[session]; ok {
		return a
	}
	return uuid.NewString()
}

// open notes an attempt of unknown outcome.
func (o *openings) open(session, attempt string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.unsettled[session]; !known && len(o.unsettled) >= maxUnsettled {
		o.log.Error("a token may be burnt: too many attempts to open streams hang", "stream", session)
		return
	}
	o.unsettled[session] = attempt
}

// settle forgets the attempt.
func (o *openings) settle(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.unsettled, session)
}

// list returns the sessions with an attempt of unknown outcome.
func (o *openings) list() (sessions []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.unsettled {
		sessions = append(sessions, id)
	}
	return sessions
}

// begin uses a token up and makes the session a running one of this node.
func (s *Server) begin(ctx context.Context, id, token string, now time.Time) error {
	if err := s.openings.enter(ctx, id); err != nil {
		return err
	}
	defer s.openings.leave(id)
	attempt := s.openings.attempt(id)
	_, err := s.sessions.Begin(ctx, id, token, store.Opening{Node: s.node, Attempt: attempt}, now)
	switch {
	case err == nil:
		s.openings.settle(id)
	case store.Unknown(err):
		s.openings.open(id, attempt)
	}
	// Any other error is not the last word on an attempt before this one: it
	// may be about the token that came with the request.
	return err
}

// withdraw takes back attempts of unknown outcome until the server ends.
func (s *Server) withdraw() {
	defer s.chores.Done()
	tick := time.NewTicker(withdrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C:
		}
		for _, id := range s.openings.list() {
			if err := guarded(func() { s.withdrawOne(id) }); err != nil {
				s.log.Error("panic while a token was given back", "error", err)
			}
			if s.life.Err() != nil {
				return
			}
		}
	}
}

func (s *Server) withdrawOne(id string) {
	ctx, cancel := context.WithTimeout(s.life, storeTimeout)
	defer cancel()
	if s.openings.enter(ctx, id) != nil {
		return
	}
	defer s.openings.leave(id)
	s.openings.mu.Lock()
	attempt, ok := s.openings.unsettled[id]
	s.openings.mu.Unlock()
	if !ok { // a request has come through meanwhile
		return
	}
	if err := s.sessions.Withdraw(ctx, id, attempt); err != nil && store.Unknown(err) {
		return
	}
	s.openings.settle(id)
	s.log.Info("a stream that could not be opened can be opened again", "stream", id)
}
