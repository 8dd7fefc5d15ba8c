package localserver

import (
	"context"
	"sync"
	"time"

	"hubbub/protocol/recovered"
)

// openTimeout is how long a handshake waits for the store: about as long as
// a NATS cluster that lost a server takes to elect its leaders.
const openTimeout = 10 * time.Second

// tokenLocks makes sure that one request at a time on this node looks up and claims the
// token of a stream, and that no token is lost by a claim whose outcome is unknown: it is
// withdrawn, and the next request waits for that.
//
// Other nodes do not know of such a claim. For them the token is used until it
// is withdrawn, as soon as the store is back.
type tokenLocks struct {
	locks sync.Map // by stream; a channel that is closed when the claim is known or withdrawn
}

// lock waits until no other request on this node has the lock of a stream; unlock must
// follow.
func (l *tokenLocks) lock(ctx context.Context, id string) error {
	for {
		other, taken := l.locks.LoadOrStore(id, make(chan struct{}))
		if !taken {
			return nil
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *tokenLocks) unlock(id string) {
	done, _ := l.locks.LoadAndDelete(id)
	close(done.(chan struct{}))
}

// withdraw withdraws a claim of unknown outcome as soon as the store is back, and then
// unlocks the stream.
func (s *Server) withdraw(id, attempt string) {
	defer s.tokenLocks.unlock(id)
	err := recovered.Guard(func() error { return s.records.Withdraw(s.ctx, id, attempt) })
	if err != nil {
		s.log.Warn("a claim could not be withdrawn; its token may be lost", "stream", id, recovered.Attr(err))
		return
	}
	s.log.Info("a claim was withdrawn; its token is valid again", "stream", id)
}
