package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
	"hubbub/protocol/testkit"
)

// TestRetryPolicy is the table on top of reconnect.go.
func TestRetryPolicy(t *testing.T) {
	closed := func(code int, ended bool) CloseInfo { return closedBy(code, "", ended) }
	for _, c := range []struct {
		name  string
		info  CloseInfo
		ended bool
		idle  time.Duration
		want  bool
	}{
		{"broke", CloseInfo{Reason: Lost}, false, 0, true},
		{"broke after end_of_stream", CloseInfo{Reason: Lost}, true, 0, true},
		{"silent", CloseInfo{Reason: TimedOut}, false, 0, true},
		{"no close after end_of_stream", CloseInfo{Reason: TimedOut}, true, 0, false},
		{"1011 after end_of_stream", closed(1011, true), true, 0, true},
		{"1000", closed(1000, true), true, 0, false},
		{"1008 after a pause", closed(1008, false), false, time.Minute, true},
		{"1009 after a pause", closed(1009, false), false, time.Minute, false},
		{"garbage", CloseInfo{Reason: ProtocolError}, false, 0, false},
		{"own fault", CloseInfo{Reason: Lost, Err: hint.Errorf("", "x: %w", &recovered.Error{})}, false, 0, false},
		{"closed here", CloseInfo{Reason: Cancelled}, false, 0, false},
	} {
		testkit.Equal(t, retryAfterLoss(c.info, c.ended, c.idle), c.want, c.name, "retry")
	}
	for code, want := range map[int]bool{1000: true, 1001: true, 1005: true, 1011: true, 1012: true, 1013: true, 2500: true,
		1002: false, 1003: false, 1007: false, 1008: false, 1010: false, 3000: false, 4999: false} {
		testkit.Equal(t, retryAfterLoss(closed(code, false), false, 0), want, code, "retry")
	}
	for _, c := range []struct {
		status                      int // 0 = no response
		creating, opening, watching bool
	}{
		{0, true, true, true},
		{200, true, true, true}, {302, true, true, true},
		{400, false, false, false}, {401, false, true, false}, {402, false, false, false}, {403, false, false, false}, {404, true, true, false},
		{405, false, false, false}, {408, true, true, true}, {409, true, true, true}, {410, false, true, false}, {413, false, false, false},
		{421, true, true, true}, {425, true, true, true}, {426, false, false, false}, {429, true, true, true}, {451, false, false, false},
		{500, true, true, true}, {501, false, false, false}, {502, true, true, true}, {503, true, true, true}, {504, true, true, true}, {505, false, false, false},
	} {
		err := errors.New("connection refused")
		if c.status != 0 {
			err = &ResponseError{Status: c.status}
		}
		for at, want := range map[attemptStep]bool{creating: c.creating, opening: c.opening, watching: c.watching} {
			testkit.Equal(t, retryAfterRefusal(at, err), want, c.status, "at step", at, "retry")
			if page := (&ResponseError{Status: c.status, page: true}); c.status/100 == 4 && !retryAfterRefusal(at, page) {
				t.Errorf("a page with %d at step %d is the end", c.status, at)
			}
		}
	}
}

// TestOutage: the loss of a stream that was open for long, and has decided audio, begins a new
// outage, with all attempts.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		uptime     time.Duration
		progressed bool
		attempts   int
	}{{minUptime - time.Second, true, 5}, {minUptime, false, 5}, {minUptime, true, 0}} {
		r := reconnector{client: &Client{config: defaultConfig()}, began: time.Now(), attempts: 5, last: true}
		r.lost(time.Now().Add(-c.uptime), c.progressed, errors.New("broke"))
		if again := c.attempts == 0; r.attempts != c.attempts || r.last == again || r.began.IsZero() != again {
			t.Errorf("after %v: %+v", c.uptime, &r)
		}
	}
}

// A service that asks to wait for longer than is left is not asked at the limit instead, however long the interval is.
func TestRetryAfterBeyondTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, Options{BaseURL: "http://service.invalid"})
		c.config.backOff = func(n int, _ error) time.Duration { return map[bool]time.Duration{true: time.Hour}[n > 1] }
		r := reconnector{client: c, limit: time.Minute}
		r.lost(time.Now(), true, errors.New("broke"))
		attempts := 0
		err := r.run(t.Context(), func(context.Context) (attemptStep, error) {
			attempts++
			return creating, &ResponseError{Status: http.StatusServiceUnavailable, RetryAfter: 2 * time.Minute}
		})
		testkit.Contains(t, fmt.Sprint(err), "the service asks to wait 2m0s and 1m0s are left")
		testkit.Equal(t, attempts, 1, "attempts")
	})
}

func TestBackOff(t *testing.T) {
	for n, most := range []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second} {
		if n == 0 {
			continue
		}
		seen := map[time.Duration]bool{}
		for range 50 {
			d := backOff(n, nil)
			if seen[d] = true; d < most/2 || d >= most {
				t.Fatalf("try %d waits %v, want %v to %v", n, d, most/2, most)
			}
		}
		if len(seen) < 10 {
			t.Errorf("try %d: only %d different waits of 50", n, len(seen))
		}
	}
	if d := backOff(1000, nil); d > maxBackOff {
		t.Errorf("try 1000 waits %v", d)
	}
	asked := &ResponseError{Status: http.StatusTooManyRequests, RetryAfter: 42 * time.Second}
	testkit.Equal(t, backOff(1, asked), asked.RetryAfter, "asked to wait 42 s, waits")
}
