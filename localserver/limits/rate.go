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

// RateWindow is the time in which requests are counted.
const RateWindow = time.Minute

const (
	// countTimeout is how long a node waits for a shared store: longer than a
	// NATS cluster takes to elect its leaders.
	countTimeout = 15 * time.Second
	// ownCountTimeout is how long it waits for a store of its own.
	ownCountTimeout = 5 * time.Second
	// countPause is how long after a failure the store is not called.
	countPause = time.Second
	// maxWindows is the number of windows from which on unused ones are removed.
	maxWindows = 4096
)

// Rate bounds the requests of each account to each operation in any minute.
//
// The requests are counted in the store, so that the count is exact over all
// nodes. Concurrent requests are counted in one call. Once the limit is reached,
// the store is not called until the oldest request leaves the window.
//
// If the store does not respond, a node that shares it refuses the request,
// because other nodes may be counting; a node with a store of its own counts by
// itself.
type Rate struct {
	store       store.Counters
	shared      bool
	unavailable func() bool // reports whether a shared store has not responded for a while
	now         func() time.Time
	log         *slog.Logger

	mu      sync.Mutex
	windows map[string]*window
	resume  time.Time // until when the store is not called
}

// window is what a node knows about the requests of one account to one
// operation.
type window struct {
	queue struct { // requests that are not counted yet
		sync.Mutex
		waiting []*Counted
	}

	mu   sync.Mutex // held during the call of the store, which counts all that wait
	uses []time.Time
	full time.Time // until when the limit is reached
}

// Counted is one request and the result of counting it.
type Counted struct {
	Taken bool      // it is within the limit
	Used  int       // requests in the window
	Reset time.Time // when one more is available
	Err   error     // it could not be counted

	known bool // the rest is set
}

// errNotCounted is the error of a request that may or may not be within the limit.
var errNotCounted = errors.New("the store does not respond")

// NewRate returns a Rate that counts in a store. shared says that other nodes count
// there as well, and unavailable reports whether it has not responded for a while.
func NewRate(counters store.Counters, shared bool, unavailable func() bool, now func() time.Time, log *slog.Logger) *Rate {
	return &Rate{store: counters, shared: shared, unavailable: unavailable,
		now: now, log: log, windows: map[string]*window{}}
}

// Take counts one request, and with it all others of the account to the operation
// that wait, if there are fewer than limit in the window. The store is called
// with a deadline of its own, also after ctx has ended.
func (r *Rate) Take(ctx context.Context, operation, account string, limit int) Counted {
	key := operation + " " + account
	win := r.window(key)
	mine := &Counted{}
	win.queue.Lock()
	win.queue.waiting = append(win.queue.waiting, mine)
	win.queue.Unlock()

	win.mu.Lock()
	defer win.mu.Unlock()
	if mine.known { // an earlier call has counted it
		return *mine
	}
	win.queue.Lock()
	batch := win.queue.waiting
	win.queue.waiting = nil
	win.queue.Unlock()
	r.count(ctx, key, win, batch, limit)
	for _, c := range batch {
		c.known = true
	}
	return *mine
}

// count counts some requests.
func (r *Rate) count(ctx context.Context, key string, win *window, batch []*Counted, limit int) {
	now := r.now()
	win.prune(now)
	if now.Before(win.full) && win.full.Sub(now) <= RateWindow { // beyond, the clock was set back
		for _, c := range batch {
			c.Used, c.Reset = limit, win.full
		}
		return
	}
	var err error
	if r.storeUsable(now) {
		timeout := ownCountTimeout
		if r.shared && !r.unavailable() {
			timeout = countTimeout
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		var got store.Count
		if got, err = r.store.Take(ctx, key, now, len(batch), limit, RateWindow); err == nil {
			win.distribute(got, batch, now)
			return
		}
		r.log.Warn("requests could not be counted", "error", err, "requests", len(batch))
		r.mu.Lock()
		r.resume = r.now().Add(countPause)
		r.mu.Unlock()
	}
	for _, c := range batch {
		if r.shared {
			c.Reset, c.Err = now.Add(countPause), errNotCounted
		} else {
			win.take(c, now, limit)
		}
	}
}

// distribute assigns the result of the store to the requests.
func (win *window) distribute(got store.Count, batch []*Counted, now time.Time) {
	for i, c := range batch {
		c.Taken = i < got.Taken
		c.Used = got.Used - max(0, got.Taken-1-i)
		c.Reset = got.Reset
		if c.Taken {
			win.uses = append(win.uses, now)
		} else {
			win.full = got.Reset
		}
	}
}

// storeUsable reports whether the store may be called.
func (r *Rate) storeUsable(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !now.Before(r.resume)
}

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
	return win
}

// removeUnused removes the windows without a request in the last minute.
func (r *Rate) removeUnused() {
	now := r.now()
	for key, win := range r.windows {
		if !win.mu.TryLock() { // it is in use
			continue
		}
		win.prune(now)
		if len(win.uses) == 0 && !now.Before(win.full) {
			delete(r.windows, key)
		}
		win.mu.Unlock()
	}
}

// prune removes the uses that have left the window.
func (win *window) prune(now time.Time) {
	win.uses = slices.DeleteFunc(win.uses, func(at time.Time) bool { return now.Sub(at) >= RateWindow })
}

// take counts one request without the store.
func (win *window) take(c *Counted, now time.Time, limit int) {
	if c.Taken = len(win.uses) < limit; c.Taken {
		win.uses = append(win.uses, now)
	}
	c.Used, c.Reset = len(win.uses), win.uses[0].Add(RateWindow)
}
