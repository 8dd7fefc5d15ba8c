package limits

import (
	"context"
	"errors"
	"sync"
)

// Why nothing more is admitted.
var (
	ErrFull     = errors.New("too many streams")
	ErrStopping = errors.New("the server is stopping")
)

// Admission bounds the connections of one kind on this node, and ends their
// admission when the server stops.
type Admission struct {
	limit int

	mu      sync.Mutex
	open    int
	closed  bool          // to new connections
	stopped bool          // drain is closed
	drain   chan struct{} // closed when the open connections are to finish
	empty   chan struct{} // closed when none is open and none is admitted
}

// NewAdmission returns an Admission of at most limit connections.
func NewAdmission(limit int) *Admission {
	return &Admission{limit: limit, drain: make(chan struct{}), empty: make(chan struct{})}
}

// Limit is the largest number of open connections.
func (a *Admission) Limit() int { return a.limit }

// Drain is closed when the open connections are to finish.
func (a *Admission) Drain() <-chan struct{} { return a.drain }

// Available returns ErrFull, ErrStopping, or nil if Acquire would succeed now.
func (a *Admission) Available() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.availableLocked()
}

func (a *Admission) availableLocked() error {
	switch {
	case a.closed:
		return ErrStopping
	case a.open >= a.limit:
		return ErrFull
	}
	return nil
}

// Acquire admits one connection; Release must be called at its end. The error is
// ErrFull or ErrStopping.
func (a *Admission) Acquire() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.availableLocked(); err != nil {
		return err
	}
	a.open++
	return nil
}

// Release ends a connection that Acquire admitted.
func (a *Admission) Release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if a.closed && a.open == 0 {
		close(a.empty)
	}
}

// Close admits no more connections; the open ones continue.
func (a *Admission) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeLocked()
}

func (a *Admission) closeLocked() {
	if a.closed {
		return
	}
	a.closed = true
	if a.open == 0 {
		close(a.empty)
	}
}

// Stop admits no more connections and asks the open ones to finish.
func (a *Admission) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeLocked()
	if !a.stopped {
		a.stopped = true
		close(a.drain)
	}
}

// Stopping reports whether no more connections are admitted.
func (a *Admission) Stopping() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// Count is the number of open connections.
func (a *Admission) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// Wait blocks until every connection has ended after Close or Stop, or ctx ends.
func (a *Admission) Wait(ctx context.Context) error {
	select {
	case <-a.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Quota bounds what each account has open on this node.
type Quota struct {
	limit int

	mu   sync.Mutex
	open map[string]int // accounts with nothing open are not in it
}

// NewQuota returns a Quota of limit units for each account.
func NewQuota(limit int) *Quota { return &Quota{limit: limit, open: map[string]int{}} }

// Available reports whether Acquire would succeed now.
func (q *Quota) Available(account string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open[account] < q.limit
}

// Acquire uses one unit of the account's quota, if there is one left; Release
// gives it back.
func (q *Quota) Acquire(account string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[account] >= q.limit {
		return false
	}
	q.open[account]++
	return true
}

// Release gives one unit back.
func (q *Quota) Release(account string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[account]--; q.open[account] <= 0 {
		delete(q.open, account)
	}
}
