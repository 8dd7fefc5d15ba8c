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

// Admission bounds the connections of one kind on this node, all of them and those of
// each account, and ends their admission when the server stops.
type Admission struct {
	limit, accountLimit int

	drain context.Context // canceled when the open connections are to finish
	stop  context.CancelFunc

	mu     sync.Mutex
	open   int
	of     map[string]int // accounts with nothing open are not in it
	closed bool           // to new connections
	empty  chan struct{}  // closed when none is open and none is admitted
}

// NewAdmission returns an Admission of at most limit connections, accountLimit of them of
// one account.
func NewAdmission(limit, accountLimit int) *Admission {
	a := &Admission{limit: limit, accountLimit: accountLimit, of: map[string]int{}, empty: make(chan struct{})}
	a.drain, a.stop = context.WithCancel(context.Background())
	return a
}

// Limit is the largest number of open connections.
func (a *Admission) Limit() int { return a.limit }

// Drain is closed when the open connections are to finish.
func (a *Admission) Drain() <-chan struct{} { return a.drain.Done() }

// Available returns ErrFull, ErrStopping, or nil if Acquire would succeed now. "" is an
// account with nothing open.
func (a *Admission) Available(account string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.availableLocked(account)
}

func (a *Admission) availableLocked(account string) error {
	switch {
	case a.closed:
		return ErrStopping
	case a.open >= a.limit, a.of[account] >= a.accountLimit:
		return ErrFull
	}
	return nil
}

// Acquire admits one connection of an account; Release must be called at its end. The
// error is ErrFull or ErrStopping.
func (a *Admission) Acquire(account string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.availableLocked(account); err != nil {
		return err
	}
	a.open++
	a.of[account]++
	return nil
}

// Release ends a connection that Acquire admitted.
func (a *Admission) Release(account string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if a.of[account]--; a.of[account] == 0 {
		delete(a.of, account)
	}
	if a.closed && a.open == 0 {
		close(a.empty)
	}
}

// Close admits no more connections; the open ones continue.
func (a *Admission) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed && a.open == 0 {
		close(a.empty)
	}
	a.closed = true
}

// Stop admits no more connections and asks the open ones to finish.
func (a *Admission) Stop() {
	a.Close()
	a.stop()
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
