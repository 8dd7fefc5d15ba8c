package localserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/store"
)

// DefaultRatePerMinute is the value of Options.RatePerMinute unless given.
const DefaultRatePerMinute = 100

const (
	rateWindow = time.Minute
	// countTimeout is how long a node waits for a shared store: longer than a
	// NATS cluster takes to elect its leaders.
	countTimeout = 15 * time.Second
	// countPause is how long after a failure the store is not called.
	countPause = time.Second
	// jobStatusFactor is how many times the requests of another operation may ask
	// for the status of a job: clients poll it.
	jobStatusFactor = 3
	// maxWindows is the number of windows from which on unused ones are removed.
	maxWindows = 4096
)

// limiter bounds the requests of each account to each operation in any minute.
//
// The requests are counted in the store, so that the count is exact over all
// nodes. Concurrent requests are counted in one call. Once the limit is reached,
// the store is not called until the oldest request leaves the window.
//
// If the store does not answer, a node that shares it refuses the request,
// because other nodes may be counting; a node with a store of its own counts by
// itself.
type limiter struct {
	limit       int // < 0: none
	store       store.Counters
	shared      bool
	unavailable func() bool // reports whether a shared store has not answered for a while
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
		waiting []*counted
	}

	mu   sync.Mutex // held during the call of the store, which counts all that wait
	uses []time.Time
	full time.Time // until when the limit is reached
}

// counted is one request and the result of counting it.
type counted struct {
	known bool // the rest is set
	taken bool // it is within the limit
	used  int  // requests in the window
	reset time.Time
	err   error
}

// errNotCounted is a request that may or may not be within the limit.
var errNotCounted = errors.New("the store does not answer")

func newLimiter(limit int, counters store.Counters, shared bool, now func() time.Time, log *slog.Logger) *limiter {
	return &limiter{limit: limit, store: counters, shared: shared, unavailable: func() bool { return false },
		now: now, log: log, windows: map[string]*window{}}
}

// limitOf is the limit of an operation.
func (l *limiter) limitOf(operation string) int {
	if operation == jobStatusRoute {
		return min(jobStatusFactor*l.limit, MaxRatePerMinute)
	}
	return l.limit
}

// take counts one request, and with it all others of the account that wait.
func (l *limiter) take(ctx context.Context, operation, account string) counted {
	key := operation + " " + account
	win := l.window(key)
	mine := &counted{}
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
	l.count(ctx, key, win, batch, l.limitOf(operation))
	for _, c := range batch {
		c.known = true
	}
	return *mine
}

// count counts some requests.
func (l *limiter) count(ctx context.Context, key string, win *window, batch []*counted, limit int) {
	now := l.now()
	win.prune(now)
	if now.Before(win.full) {
		for _, c := range batch {
			c.used, c.reset = limit, win.full
		}
		return
	}
	var err error
	if l.storeUsable(now) {
		timeout := storeTimeout
		if l.shared && !l.unavailable() {
			timeout = countTimeout
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		var got store.Count
		if got, err = l.store.Take(ctx, key, now, len(batch), limit, rateWindow); err == nil {
			win.distribute(got, batch, now)
			return
		}
		l.log.Warn("requests could not be counted", "error", err, "requests", len(batch))
		l.mu.Lock()
		l.resume = l.now().Add(countPause)
		l.mu.Unlock()
	}
	for _, c := range batch {
		if l.shared {
			c.reset, c.err = now.Add(countPause), errNotCounted
		} else {
			win.take(c, now, limit)
		}
	}
}

// distribute assigns the result of the store to the requests.
func (win *window) distribute(got store.Count, batch []*counted, now time.Time) {
	for i, c := range batch {
		c.taken = i < got.Taken
		c.used = got.Used - max(0, got.Taken-1-i)
		c.reset = got.Reset
		if c.taken {
			win.uses = append(win.uses, now)
		} else {
			win.full = got.Reset
		}
	}
}

// storeUsable reports whether the store may be called.
func (l *limiter) storeUsable(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !now.Before(l.resume)
}

func (l *limiter) window(key string) *window {
	l.mu.Lock()
	defer l.mu.Unlock()
	win := l.windows[key]
	if win == nil {
		if len(l.windows) >= maxWindows {
			l.removeUnused()
		}
		win = &window{}
		l.windows[key] = win
	}
	return win
}

// removeUnused removes the windows without a request in the last minute.
func (l *limiter) removeUnused() {
	now := l.now()
	for key, win := range l.windows {
		if !win.mu.TryLock() { // it is in use
			continue
		}
		win.prune(now)
		if len(win.uses) == 0 && !now.Before(win.full) {
			delete(l.windows, key)
		}
		win.mu.Unlock()
	}
}

// prune removes the uses that have left the window.
func (win *window) prune(now time.Time) {
	win.uses = slices.DeleteFunc(win.uses, func(at time.Time) bool { return now.Sub(at) >= rateWindow })
}

// take counts one request without the store.
func (win *window) take(c *counted, now time.Time, limit int) {
	if c.taken = len(win.uses) < limit; c.taken {
		win.uses = append(win.uses, now)
	}
	c.used, c.reset = len(win.uses), win.uses[0].Add(rateWindow)
}

// limited authenticates and counts the requests to an operation, and refuses
// those above the limit. All answers of an operation have the same three
// headers, also those to an invalid key, which are not counted.
func (l *limiter) limited(operation string, keys *apikeys.Keyring, next http.Handler) http.Handler {
	if l.limit < 0 {
		return authenticated(keys, next)
	}
	limit := l.limitOf(operation)
	counted := authenticated(keys, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := l.take(r.Context(), operation, caller(r.Context()).Account)
		reset := max(1, int((c.reset.Sub(l.now())+time.Second-1)/time.Second))
		setRateHeaders(w.Header(), limit, max(0, limit-c.used), reset)
		switch {
		case c.taken:
			next.ServeHTTP(w, r)
			return
		case c.err != nil:
			refuse(w, r, http.StatusServiceUnavailable, "The request could not be counted; try again")
			return
		}
		w.Header().Set("Retry-After", strconv.Itoa(reset))
		refuse(w, r, http.StatusTooManyRequests, "Too many requests; try again later")
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setRateHeaders(w.Header(), limit, limit, int(rateWindow/time.Second))
		counted.ServeHTTP(w, r)
	})
}

// setRateHeaders sets the headers: the requests per minute, how many are left, and
// after how many seconds one more is available.
func setRateHeaders(h http.Header, limit, left, reset int) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	h.Set("X-RateLimit-Reset", strconv.Itoa(reset))
}
