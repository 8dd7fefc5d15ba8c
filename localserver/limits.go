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

	"hubbub/localserver/store"
)

// DefaultRatePerMinute is how many requests of one account to one operation
// any minute has.
const DefaultRatePerMinute = 100

const (
	rateWindow = time.Minute
	// countTimeout is how long a node waits for a store that it shares: longer
	// than a NATS cluster takes to choose its leaders.
	countTimeout = 15 * time.Second
	// countPause is how long after a failure the store is left alone.
	countPause = time.Second
	// maxMeters is when meters that nobody needs any more are thrown away.
	maxMeters = 4096
)

// limiter bounds the requests of each account to each operation in any minute.
//
// The count is in the store, so that it is exact over all nodes. Requests that
// come at once are counted in one call, and one that is over the limit costs
// the store nothing until the first place is free again.
//
// When the store does not answer, it depends: a node that shares it lets
// nothing through that is not counted, for others may be counting; one with a
// store of its own counts by itself, for nobody else is.
type limiter struct {
	limit  int // < 0: none
	store  store.Counters
	shared bool
	away   func() bool // tells whether a shared store has not answered for a while
	now    func() time.Time
	log    *slog.Logger

	mu     sync.Mutex
	meters map[string]*meter
	resume time.Time // until when the store is left alone
}

// meter is what a node knows of one account and operation.
type meter struct {
	line struct { // requests that are not counted yet
		sync.Mutex
		waiting []*counted
	}

	mu   sync.Mutex // held over the call of the store, which counts all that wait
	uses []time.Time
	full time.Time // until when there is no place
}

// counted is one request and what became of it.
type counted struct {
	known bool
	taken bool // it is within the limit
	used  int  // requests of the minute
	reset time.Time
	err   error
}

// errNotCounted is a request of which nobody knows whether it is within the
// limit.
var errNotCounted = errors.New("the store does not answer")

func newLimiter(limit int, counters store.Counters, shared bool, now func() time.Time, log *slog.Logger) *limiter {
	return &limiter{limit: limit, store: counters, shared: shared, away: func() bool { return false },
		now: now, log: log, meters: map[string]*meter{}}
}

// take counts one request, and with it all others of the account that wait.
func (l *limiter) take(ctx context.Context, operation, account string) counted {
	key := operation + " " + account
	m := l.meter(key)
	mine := &counted{}
	m.line.Lock()
	m.line.waiting = append(m.line.waiting, mine)
	m.line.Unlock()

	m.mu.Lock()
	defer m.mu.Unlock()
	if mine.known { // who was here before us has seen to it
		return *mine
	}
	m.line.Lock()
	batch := m.line.waiting
	m.line.waiting = nil
	m.line.Unlock()
	l.count(ctx, key, m, batch)
	for _, c := range batch {
		c.known = true
	}
	return *mine
}

// count finds out what becomes of some requests.
func (l *limiter) count(ctx context.Context, key string, m *meter, batch []*counted) {
	now := l.now()
	m.forget(now)
	if now.Before(m.full) {
		for _, c := range batch {
			c.used, c.reset = l.limit, m.full
		}
		return
	}
	var err error
	if l.answers(now) {
		timeout := storeTimeout
		if l.shared && !l.away() {
			timeout = countTimeout
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		var got store.Count
		if got, err = l.store.Take(ctx, key, now, len(batch), l.limit, rateWindow); err == nil {
			m.share(got, batch, now)
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
			m.take(c, now, l.limit)
		}
	}
}

// share hands out what the store has counted.
func (m *meter) share(got store.Count, batch []*counted, now time.Time) {
	for i, c := range batch {
		c.taken = i < got.Taken
		c.used = got.Used - max(0, got.Taken-1-i)
		c.reset = got.Reset
		if c.taken {
			m.uses = append(m.uses, now)
		} else {
			m.full = got.Reset
		}
	}
}

// answers tells whether the store is to be asked.
func (l *limiter) answers(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !now.Before(l.resume)
}

func (l *limiter) meter(key string) *meter {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.meters[key]
	if m == nil {
		if len(l.meters) >= maxMeters {
			l.clean()
		}
		m = &meter{}
		l.meters[key] = m
	}
	return m
}

// clean throws away meters that know nothing of the last minute.
func (l *limiter) clean() {
	now := l.now()
	for key, m := range l.meters {
		if !m.mu.TryLock() { // it is in use
			continue
		}
		m.forget(now)
		if len(m.uses) == 0 && !now.Before(m.full) {
			delete(l.meters, key)
		}
		m.mu.Unlock()
	}
}

// forget drops the uses that have left the window.
func (m *meter) forget(now time.Time) {
	m.uses = slices.DeleteFunc(m.uses, func(at time.Time) bool { return now.Sub(at) >= rateWindow })
}

// take counts one request without the store.
func (m *meter) take(c *counted, now time.Time, limit int) {
	if c.taken = len(m.uses) < limit; c.taken {
		m.uses = append(m.uses, now)
	}
	c.used, c.reset = len(m.uses), m.uses[0].Add(rateWindow)
}

// limited counts the requests to an operation and turns away those that are
// too many. All answers of an operation carry the same three headers, also
// those that say no to a key, of which nothing is counted.
func (l *limiter) limited(operation string, keys *keyring, next http.Handler) http.Handler {
	if l.limit < 0 {
		return keys.require(next)
	}
	counted := keys.require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := l.take(r.Context(), operation, caller(r.Context()).account)
		reset := max(1, int((c.reset.Sub(l.now())+time.Second-1)/time.Second))
		l.head(w.Header(), max(0, l.limit-c.used), reset)
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
		l.head(w.Header(), l.limit, int(rateWindow/time.Second))
		counted.ServeHTTP(w, r)
	})
}

// head writes the headers: how many requests any minute has, how many are
// left, and after how many seconds there is room for one more than that.
func (l *limiter) head(h http.Header, left, reset int) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(l.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	h.Set("X-RateLimit-Reset", strconv.Itoa(reset))
}
