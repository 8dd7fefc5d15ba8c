package localserver

import (
	"context"
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
	// countTimeout bounds the time in which the nodes agree on one request.
	countTimeout = 500 * time.Millisecond
	// countAlone is how long a node counts alone after the store has failed.
	countAlone = time.Second
	// maxMeters is when meters that nobody needs any more are thrown away.
	maxMeters = 4096
)

// limiter bounds the requests of each account to each operation in any minute.
//
// The count is in the store, so that it is exact over all nodes; but a request
// that is over the limit costs the store nothing until the first place is free
// again, and when the store does not answer each node counts what it sees
// itself: trouble there must not close the service.
type limiter struct {
	limit int // < 0: none
	store store.Counters
	now   func() time.Time
	log   *slog.Logger

	mu     sync.Mutex
	meters map[string]*meter
	alone  time.Time // until when the store is left alone
}

// meter is what a node knows of one account and operation.
type meter struct {
	mu   sync.Mutex // held over the call of the store: here requests queue, not there
	uses []time.Time
	full time.Time // until when there is no place
}

func newLimiter(limit int, counters store.Counters, now func() time.Time, log *slog.Logger) *limiter {
	return &limiter{limit: limit, store: counters, now: now, log: log, meters: map[string]*meter{}}
}

// take counts one request.
func (l *limiter) take(ctx context.Context, operation, account string) store.Count {
	key := operation + " " + account
	m := l.meter(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := l.now()
	m.forget(now)
	if now.Before(m.full) {
		return store.Count{Used: l.limit, Reset: m.full}
	}
	if !l.counts(now) {
		return m.take(now, l.limit)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	c, err := l.store.Take(ctx, key, now, l.limit, rateWindow)
	if err != nil {
		l.log.Warn("requests are counted by this node alone", "error", err)
		l.mu.Lock()
		l.alone = now.Add(countAlone)
		l.mu.Unlock()
		return m.take(now, l.limit)
	}
	if c.Taken {
		m.uses = append(m.uses, now)
	} else {
		m.full = c.Reset
	}
	return c
}

// counts tells whether the store is to be asked.
func (l *limiter) counts(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !now.Before(l.alone)
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
func (m *meter) take(now time.Time, limit int) store.Count {
	if len(m.uses) >= limit {
		return store.Count{Used: len(m.uses), Reset: m.uses[0].Add(rateWindow)}
	}
	m.uses = append(m.uses, now)
	return store.Count{Taken: true, Used: len(m.uses), Reset: m.uses[0].Add(rateWindow)}
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
		reset := max(1, int((c.Reset.Sub(l.now())+time.Second-1)/time.Second))
		l.head(w.Header(), max(0, l.limit-c.Used), reset)
		if !c.Taken {
			w.Header().Set("Retry-After", strconv.Itoa(reset))
			refuse(w, r, http.StatusTooManyRequests, "Too many requests; try again later")
			return
		}
		next.ServeHTTP(w, r)
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
