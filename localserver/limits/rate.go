// Package limits bounds what accounts and this node may do at a time: requests in a
// minute, open connections, streams that the engines keep up with.
package limits

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"hubbub/localserver/store"
)

// Counters is what a Rate needs of the store.
type Counters interface {
	Take(ctx context.Context, key string, now time.Time, limit int, window time.Duration) (store.Count, error)
}

// RateWindow is the time in which requests are counted.
const RateWindow = time.Minute

const (
	// countTimeout is how long a node waits for the store: longer than a
	// NATS cluster takes to elect its leaders. lostTimeout is how long it waits
	// after a failure.
	countTimeout = 15 * time.Second
	lostTimeout  = 5 * time.Second
	// countPause is how long after a failure the store is not called.
	countPause = time.Second
	// maxWindows is the number of windows from which on unused ones are removed.
	maxWindows = 4096
)

// Rate bounds the requests of each account to each operation in any minute.
//
// A node with a store of its own counts by itself. Requests to several nodes are
// counted in the store that they share, so that the count is exact. Once the limit is
// reached, the store is not called until the oldest request leaves the window. If it does
// not respond, requests are refused, because other nodes may be counting.
type Rate struct {
	store Counters // nil for a node that counts by itself
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex
	windows map[string]*window
	resume  time.Time // until when the store is not called; zero unless the last call has failed
}

// window is what a node knows about the requests of one account to one
// operation.
type window struct {
	requests int // that use it, so that it is not removed; guarded by Rate.mu

	mu   sync.Mutex  // held during the call of the store
	uses []time.Time // without a shared store
	full time.Time   // until when the limit is reached, with one
}

// errNotCounted is the error of a request that may or may not be within the limit.
var errNotCounted = errors.New("the store does not respond")

// NewRate returns a Rate that counts in the store of several nodes, or by itself if
// there is none.
func NewRate(shared Counters, now func() time.Time, log *slog.Logger) *Rate {
	return &Rate{store: shared, now: now, log: log, windows: map[string]*window{}}
}

// Take counts one request, if there are fewer than limit in the window. After an error
// it could not be counted. The store is called with a deadline of its own, also after ctx
// has ended.
func (r *Rate) Take(ctx context.Context, operation, account string, limit int) (store.Count, error) {
	key := operation + " " + account
	win := r.window(key)
	defer r.leave(win)
	win.mu.Lock()
	defer win.mu.Unlock()
	now := r.now()
	win.prune(now)
	notCounted := store.Count{Reset: now.Add(countPause)}
	resume := r.resumeAt()
	switch {
	case r.store == nil:
		return win.take(now, limit), nil
	case now.Before(win.full) && win.full.Sub(now) <= RateWindow: // beyond, the clock was set back
		return store.Count{Used: limit, Reset: win.full}, nil
	case now.Before(resume):
		return notCounted, errNotCounted
	}
	timeout := countTimeout
	if !resume.IsZero() {
		timeout = lostTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	count, err := r.store.Take(ctx, key, now, limit, RateWindow)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resume = (time.Time{}); err != nil {
		r.log.Warn("requests could not be counted", "error", err)
		r.resume = r.now().Add(countPause)
		return notCounted, errNotCounted
	}
	if !count.Taken {
		win.full = count.Reset
	}
	return count, nil
}

func (r *Rate) resumeAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resume
}

// window returns the window of a key for a request, until leave.
func (r *Rate) window(key string) *window {
	r.mu.Lock()
	defer r.mu.Unlock()
	win := r.windows[key]
	if win == nil {
		if len(r.windows) >= maxWindows {
			r.removeUnused()
		}
		win = &window{}
		r.windows[key] = win
	}
	win.requests++
	return win
}

func (r *Rate) leave(win *window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	win.requests--
}

// removeUnused removes the windows without a request in the last minute.
func (r *Rate) removeUnused() {
	now := r.now()
	for key, win := range r.windows {
		if win.requests > 0 {
			continue
		}
		win.prune(now)
		if len(win.uses) == 0 && !now.Before(win.full) {
			delete(r.windows, key)
		}
	}
}

// prune removes the uses that have left the window, and those of before the clock was
// set back by more than that.
func (win *window) prune(now time.Time) {
	win.uses = slices.DeleteFunc(win.uses, func(at time.Time) bool { return now.Sub(at).Abs() >= RateWindow })
}

// take counts one request without the store.
func (win *window) take(now time.Time, limit int) (c store.Count) {
	if c.Taken = len(win.uses) < limit; c.Taken {
		win.uses = append(win.uses, now)
	}
	c.Used, c.Reset = len(win.uses), win.uses[0].Add(RateWindow)
	return c
}
