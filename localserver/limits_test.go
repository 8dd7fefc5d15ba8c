package localserver

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubbub/localserver/apikeys"
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

// A request is counted for its account and operation, until it is a minute old. Contract rules
// test the limit, and package limits the window.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	clock := newClock()
	dir := t.TempDir()
	h := serve(t, clock.use, func(o *setup) { o.DataDir = dir }, limitOf(1))
	h.do("GET", "/v1/test", testKey, nil).hasStatus(t, "the first request", 200)
	clock.move(10 * time.Second)
	res := h.do("GET", "/v1/test", testKey, nil)
	res.apiError(t, 429)
	_, left, reset := rate(t, res.Header)
	if again, err := strconv.Atoi(res.Header.Get("Retry-After")); left != 0 || reset < 48 || reset > 50 || again != reset || err != nil {
		t.Errorf("429: left %d, reset %d, Retry-After %q", left, reset, res.Header.Get("Retry-After"))
	}
	other := mustKey(t, dir, "other", apikeys.PlanPro, clock.now())
	h.do("GET", "/v1/test", other, nil).hasStatus(t, "another account", 200)
	if res := h.do("GET", "/healthz", "", nil); res.StatusCode != 200 || res.Header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("healthz: %d %v", res.StatusCode, res.Header)
	}
	// Requests that no operation takes have the headers and do not count.
	for at, status := range map[string]int{"/v1/live": 405, "/v1/x": 404, "/v2/jobs?" + strings.Repeat("x", maxTarget): 414} {
		res := h.do("PUT", at, testKey, nil)
		res.apiError(t, status)
		if limit, left, reset := rate(t, res.Header); limit != 1 || left != 1 || reset != 60 {
			t.Errorf("%d: limit %d, left %d, reset %d", status, limit, left, reset)
		}
	}
	clock.move(50 * time.Second)
	h.do("GET", "/v1/test", testKey, nil).hasStatus(t, "a minute after the first one", 200)
}
