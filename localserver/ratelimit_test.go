package localserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/localserver/apikeys"
	"hubbub/localserver/store"
)

func limitOf(n int) func(*setup) { return func(o *setup) { o.RatePerMinute = n } }

// rate reads the three headers.
func rate(t testing.TB, h http.Header) (limit, left, reset int) {
	t.Helper()
	for name, n := range map[string]*int{"X-RateLimit-Limit": &limit, "X-RateLimit-Remaining": &left, "X-RateLimit-Reset": &reset} {
		var err error
		if *n, err = strconv.Atoi(h.Get(name)); err != nil {
			t.Fatalf("%s is %q", name, h.Get(name))
		}
	}
	return limit, left, reset
}

// The 101st request of a minute is refused, for this account and operation
// only, until the first one is a minute old.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	clock := newClock()
	dir := t.TempDir()
	h := serve(t, clock.use, func(o *setup) { o.DataDir = dir }, limitOf(0))
	began := clock.now()
	for i := range DefaultRatePerMinute {
		res := h.do("GET", "/v1/test", testKey, nil)
		limit, left, reset := rate(t, res.Header)
		want := int((began.Add(time.Minute).Sub(clock.now()) + time.Second - 1) / time.Second)
		if res.StatusCode != 200 || limit != 100 || left != 99-i || reset < want-1 || reset > want+1 {
			t.Fatalf("request %d: %d, limit %d, left %d, reset %d, want about %d", i, res.StatusCode, limit, left, reset, want)
		}
		clock.move(100 * time.Millisecond)
	}
	for range 3 {
		res := h.do("GET", "/v1/test", testKey, nil)
		res.apiError(t, 429)
		_, left, reset := rate(t, res.Header)
		if again, err := strconv.Atoi(res.Header.Get("Retry-After")); left != 0 || reset < 48 || reset > 52 || again != reset || err != nil {
			t.Errorf("429: left %d, reset %d, Retry-After %q", left, reset, res.Header.Get("Retry-After"))
		}
	}
	// Others are not affected.
	if res := h.do("POST", "/v1/live", testKey, nil); res.StatusCode != 200 {
		t.Errorf("another operation: %d", res.StatusCode)
	}
	other := mustKey(t, dir, "other", apikeys.PlanPro, time.Hour, clock.now())
	if res := h.do("GET", "/v1/test", other, nil); res.StatusCode != 200 {
		t.Errorf("another account: %d", res.StatusCode)
	}
	if res := h.do("GET", "/healthz", "", nil); res.StatusCode != 200 || res.Header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("healthz: %d %v", res.StatusCode, res.Header)
	}
	clock.move(50 * time.Second)
	if res := h.do("GET", "/v1/test", testKey, nil); res.StatusCode != 200 {
		t.Errorf("a minute after the first one: %d", res.StatusCode)
	}
}

// Every answer of an operation says how many requests are left.
func TestRateHeadersAreOnEveryAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.DataDir = dir }, limitOf(0))
	none := mustKey(t, dir, "none", apikeys.PlanNone, time.Hour, time.Now())
	for _, c := range []struct {
		method, path, key, body string
		status                  int
	}{
		{"GET", "/v1/test", testKey, "", 200}, {"GET", "/v1/test", "wrong", "", 401},
		{"POST", "/v1/live", testKey, "[", 400}, {"POST", "/v1/live", none, "", 402},
		{"POST", "/v1/live", testKey, strings.Repeat(" ", maxBody+1), 413},
		{"GET", "/v1/live/x", testKey, "", 404}, {"GET", "/v1/live/x", "", "", 401},
		{"GET", "/v1/live/x/events", testKey, "", 426}, {"GET", "/v1/live/x/events?from=x", testKey, "", 400},
		{"POST", "/v1/media/input", testKey, "{}", 400}, {"POST", "/v1/media/input", testKey, `{"url":"media://x"}`, 201},
		{"POST", "/v1/media/output", testKey, `{"url":"media://x"}`, 404}, {"HEAD", "/v1/test", testKey, "", 200},
	} {
		res := h.do(c.method, c.path, c.key, strings.NewReader(c.body))
		if limit, left, _ := rate(t, res.Header); res.StatusCode != c.status || limit != 100 || left < 90 {
			t.Errorf("%s %s: %d, want %d; %v", c.method, c.path, res.StatusCode, c.status, res.Header)
		}
	}
}

// Of many concurrent requests exactly as many pass as are allowed, on two nodes
// that share a store.
func TestRateLimitOverNodes(t *testing.T) {
	t.Parallel()
	shared, err := store.Open(context.Background(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	clock := newClock()
	var passed, refused atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		node := newLimiter(30, shared, true, clock.now, slog.New(slog.DiscardHandler))
		for range 4 {
			all.Go(func() {
				for range 10 {
					if node.take(context.Background(), "op", "a").taken {
						passed.Add(1)
					} else {
						refused.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	if passed.Load() != 30 || refused.Load() != 50 {
		t.Errorf("%d passed, %d were refused", passed.Load(), refused.Load())
	}
}

// failingCounters are counters that do not answer.
type failingCounters struct{ calls atomic.Int64 }

func (d *failingCounters) Take(context.Context, string, time.Time, int, int, time.Duration) (store.Count, error) {
	d.calls.Add(1)
	return store.Count{}, errors.New("inner text")
}

// A node whose own store does not answer counts by itself: requests pass, up to
// the limit.
func TestRateLimitWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &failingCounters{}
		l := newLimiter(10, d, false, time.Now, slog.New(slog.DiscardHandler))
		passed := 0
		for range 25 {
			if l.take(t.Context(), "op", "a").taken {
				passed++
			}
		}
		if passed != 10 || d.calls.Load() != 1 {
			t.Errorf("%d of 25 passed; the store was called %d times", passed, d.calls.Load())
		}
		time.Sleep(rateWindow)
		if !l.take(t.Context(), "op", "a").taken {
			t.Error("a minute later the limit is still reached")
		}
	})
}

// A node whose shared store does not answer refuses every request, and calls
// the store once a second.
func TestRateLimitWithoutASharedStore(t *testing.T) {
	d := &failingCounters{}
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(10, d, true, time.Now, slog.New(slog.DiscardHandler))
		for range 5 {
			if c := l.take(t.Context(), "op", "a"); c.taken || c.err == nil {
				t.Fatalf("%+v", c)
			}
		}
		if d.calls.Load() != 1 {
			t.Errorf("the store was called %d times", d.calls.Load())
		}
		time.Sleep(countPause)
		l.take(t.Context(), "op", "a")
		if d.calls.Load() != 2 {
			t.Error("the store is not called again")
		}
	})
	h := serve(t, limitOf(0))
	h.limiter.store, h.limiter.shared = d, true
	e := h.do("GET", "/v1/test", testKey, nil).apiError(t, 503)
	if strings.Contains(e.Message, "inner") {
		t.Error(e.Message)
	}
	h.do("GET", "/v1/test", "wrong", nil).apiError(t, 401)
}

// gatedCounters delay every call until gate is closed.
type gatedCounters struct {
	store.Counters
	calls atomic.Int64
	gate  chan struct{}
}

func (s *gatedCounters) Take(ctx context.Context, key string, now time.Time, n, limit int, window time.Duration) (store.Count, error) {
	s.calls.Add(1)
	<-s.gate
	return s.Counters.Take(ctx, key, now, n, limit, window)
}

// Concurrent requests are counted in few calls, each of them once.
func TestRequestsAreCountedTogether(t *testing.T) {
	t.Parallel()
	own, err := store.Open(context.Background(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	s := &gatedCounters{Counters: own, gate: make(chan struct{})}
	l := newLimiter(30, s, true, newClock().now, slog.New(slog.DiscardHandler))
	win := l.window("op a")
	var all sync.WaitGroup
	got := make(chan counted, 50)
	for range cap(got) {
		all.Go(func() { got <- l.take(context.Background(), "op", "a") })
	}
	eventually(t, "a queue", func() bool { // one calls the store, the others wait
		win.queue.Lock()
		defer win.queue.Unlock()
		return len(win.queue.waiting)+1 >= cap(got) || s.calls.Load() == 1 && len(win.queue.waiting) > 40
	})
	close(s.gate)
	all.Wait()
	close(got)
	taken := map[int]bool{}
	for c := range got {
		if c.taken {
			taken[c.used] = true
		}
	}
	if len(taken) != 30 || taken[0] || !taken[30] || s.calls.Load() > 10 {
		t.Errorf("%d taken, %v, in %d calls", len(taken), taken, s.calls.Load())
	}
}

// Windows do not accumulate.
func TestUnusedWindowsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(10, &failingCounters{}, false, time.Now, slog.New(slog.DiscardHandler))
		for i := range 3 * maxWindows {
			l.take(t.Context(), "op", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		if len(l.windows) > maxWindows {
			t.Errorf("%d windows", len(l.windows))
		}
	})
}

// The number of streams of an account is limited.
func TestStreamsOfAnAccount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.DataDir, o.MaxAccountStreams = dir, 1 })
	waiting := h.create() // created below the limit
	s := h.open()
	h.do("POST", "/v1/live", testKey, nil).apiError(t, 429)
	_, res, err := h.dial.Dial(waiting.URL, nil)
	if err == nil {
		t.Fatal("a second stream of the account is open")
	}
	read(t, res).apiError(t, 429)
	other := mustKey(t, dir, "other", apikeys.PlanPro, time.Hour, time.Now())
	if res := h.do("POST", "/v1/live", other, nil); res.StatusCode != 200 {
		t.Errorf("another account: %d", res.StatusCode)
	}
	s.end()
	s.rest()
	eventually(t, "quota", func() bool { return h.streamQuota.available(apikeys.DefaultAccount) })
	conn, _, err := h.dial.Dial(waiting.URL, nil) // its token was not used up
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// A request with a very large head is refused.
func TestHeadsHaveALimit(t *testing.T) {
	t.Parallel()
	h := serve(t)
	r, _ := http.NewRequest("GET", h.URL()+"/v1/test", nil)
	r.Header.Set("Authorization", "Bearer "+testKey)
	r.Header.Set("X-Long", strings.Repeat("x", 2*maxHeader))
	if res := h.send(r); res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d", res.StatusCode)
	}
	r.Header.Set("X-Long", strings.Repeat("x", maxHeader/2))
	if res := h.send(r); res.StatusCode != 200 {
		t.Errorf("half of it: %d", res.StatusCode)
	}
}
