package localserver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

var (
	errFull       = errors.New("too many streams")
	errOverloaded = errors.New("the streams are late")
	errStopping   = errors.New("the server is stopping")
)

// admission bounds the connections of one kind on this node, and ends their
// admission when the server stops.
type admission struct {
	limit int

	mu      sync.Mutex
	open    int
	closed  bool          // to new connections
	stopped bool          // drain is closed
	drain   chan struct{} // closed when the open connections are to finish
	empty   chan struct{} // closed when none is open and none is admitted
}

func newAdmission(limit int) *admission {
	return &admission{limit: limit, drain: make(chan struct{}), empty: make(chan struct{})}
}

// available returns errFull, errStopping, or nil if acquire would succeed now.
func (a *admission) available() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.availableLocked()
}

func (a *admission) availableLocked() error {
	switch {
	case a.closed:
		return errStopping
	case a.open >= a.limit:
		return errFull
	}
	return nil
}

// acquire admits one connection; release must be called at its end.
func (a *admission) acquire() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.availableLocked(); err != nil {
		return err
	}
	a.open++
	return nil
}

func (a *admission) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if a.closed && a.open == 0 {
		close(a.empty)
	}
}

// close admits no more connections; the open ones continue.
func (a *admission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeLocked()
}

func (a *admission) closeLocked() {
	if a.closed {
		return
	}
	a.closed = true
	if a.open == 0 {
		close(a.empty)
	}
}

// stop admits no more connections and asks the open ones to finish.
func (a *admission) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeLocked()
	if !a.stopped {
		a.stopped = true
		close(a.drain)
	}
}

func (a *admission) stopping() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

func (a *admission) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// wait blocks until every connection has ended after close or stop, or ctx ends.
func (a *admission) wait(ctx context.Context) error {
	select {
	case <-a.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quota bounds what each account has open on this node.
type quota struct {
	limit int

	mu   sync.Mutex
	open map[string]int // accounts with nothing open are not in it
}

func newQuota(limit int) *quota { return &quota{limit: limit, open: map[string]int{}} }

// available reports whether acquire would succeed now.
func (q *quota) available(account string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open[account] < q.limit
}

// acquire uses one unit of the account's quota, if there is one left; release
// gives it back.
func (q *quota) acquire(account string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[account] >= q.limit {
		return false
	}
	q.open[account]++
	return true
}

func (q *quota) release(account string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[account]--; q.open[account] <= 0 {
		delete(q.open, account)
	}
}

// releaseTimeout bounds how long releasing a stream waits for the store. A
// stream that is not released no longer counts once its session is over.
const releaseTimeout = 2 * time.Second

// acquireStream counts a stream against the quota of its account over all nodes
// that share the store; errFull says that the quota is used up. It counts a
// session once, however many requests try to open it, and only the node that
// runs it releases it.
func (s *Server) acquireStream(ctx context.Context, account, id string, now time.Time) error {
	if !s.store.Shared() {
		return nil
	}
	ok, err := s.quotas.AcquireStream(ctx, account, id, now, s.options.MaxAccountStreams)
	if err == nil && !ok {
		err = errFull
	}
	return err
}

func (s *Server) releaseStream(account, id string) {
	if !s.store.Shared() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := s.quotas.ReleaseStream(ctx, account, id); err != nil {
		s.log.Warn("a stream could not be released from its account's quota yet", "stream", id, "error", err)
	}
}

// streamAvailable returns errFull, or nil if an account may open one more
// stream now.
func (s *Server) streamAvailable(ctx context.Context, account string, now time.Time) error {
	ok := s.streamQuota.available(account)
	var err error
	if ok && s.store.Shared() {
		ok, err = s.quotas.StreamAvailable(ctx, account, now, s.options.MaxAccountStreams)
	}
	if err == nil && !ok {
		err = errFull
	}
	return err
}

// overloadedRetry is when a stream that an overloaded node did not take may be
// asked for again, in seconds: not before the node has judged again.
const overloadedRetry = "5"

// refuseStream answers a request for a stream that is not admitted.
func (s *Server) refuseStream(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errStopping):
		refuse(w, r, http.StatusServiceUnavailable, "The server is stopping and takes no new streams")
	case errors.Is(err, errOverloaded):
		w.Header().Set("Retry-After", overloadedRetry)
		refuse(w, r, http.StatusTooManyRequests, "The server does not keep up with its streams; try again later")
	default:
		refuse(w, r, http.StatusTooManyRequests, "Too many streams at once; try again later")
	}
}
