package limits

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/testkit"
)

// Of many concurrent requests exactly as many pass as are allowed, on two nodes
// that share a store.
func TestRateLimitOverNodes(t *testing.T) {
	t.Parallel()
	shared := testkit.Must(store.Open(context.Background(), store.Options{}))(t)
	defer shared.Close()
	var passed, refused atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		node := NewRate(shared, time.Now, slog.New(slog.DiscardHandler))
		for range 4 {
			all.Go(func() {
				for range 10 {
					if c, err := node.Take(context.Background(), "op", "a", 30); err == nil && c.Taken {
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

// failingCounters are counters that do not respond.
type failingCounters struct{ calls atomic.Int64 }

func (d *failingCounters) Take(ctx context.Context, _ string, _ time.Time, _ int, _ time.Duration) (store.Count, error) {
	d.calls.Add(1)
	<-ctx.Done()
	return store.Count{}, errors.New("inner text")
}

// A node that counts by itself allows any number of requests up to the limit, in any minute.
func TestRateLimitOfOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewRate(nil, time.Now, slog.New(slog.DiscardHandler))
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{0, 10}, {RateWindow - 1, 0}, {1, 10}} {
			time.Sleep(c.after)
			passed := 0
			for range 25 {
				if c, err := l.Take(t.Context(), "op", "a", 10); err == nil && c.Taken {
					passed++
				}
			}
			if passed != c.want {
				t.Errorf("%v later: %d of 25 passed, want %d", c.after, passed, c.want)
			}
		}
	})
}

// A node whose shared store does not respond refuses every request, and calls
// the store once a second. After the first failure it waits for a shorter time.
func TestRateLimitWithoutASharedStore(t *testing.T) {
	d := &failingCounters{}
	synctest.Test(t, func(t *testing.T) {
		l := NewRate(d, time.Now, slog.New(slog.DiscardHandler))
		for range 5 {
			if c, err := l.Take(t.Context(), "op", "a", 10); c.Taken || err == nil {
				t.Fatalf("%+v", c)
			}
		}
		if d.calls.Load() != 1 {
			t.Errorf("the store was called %d times", d.calls.Load())
		}
		time.Sleep(countPause)
		began := time.Now()
		_, _ = l.Take(t.Context(), "op", "a", 10)
		if waited := time.Since(began); d.calls.Load() != 2 || waited != lostTimeout {
			t.Errorf("the store was called %d times, the last time for %v", d.calls.Load(), waited)
		}
	})
}

// A clock that is set back does not extend the time in which requests are refused by
// more than a window.
func TestRateLimitWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	shared := testkit.Must(store.Open(context.Background(), store.Options{}))(t)
	defer shared.Close()
	for name, counters := range map[string]Counters{"shared": shared, "by itself": nil} {
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		l := NewRate(counters, func() time.Time { return now }, slog.New(slog.DiscardHandler))
		for i := range 4 {
			if c, err := l.Take(t.Context(), "op", "a", 3); err != nil || c.Taken != (i < 3) {
				t.Fatalf("%s, request %d: %+v %v", name, i, c, err)
			}
		}
		for _, back := range []time.Duration{time.Hour, 10 * time.Second} {
			now = now.Add(-back)
			for range 3 {
				_, _ = l.Take(t.Context(), "op", "a", 3)
			}
			now = now.Add(RateWindow + 10*time.Second)
			if c, err := l.Take(t.Context(), "op", "a", 3); err != nil || !c.Taken || c.Reset.Sub(now) > RateWindow {
				t.Errorf("%s, set back by %v: %+v", name, back, c)
			}
		}
	}
}

// Windows do not accumulate.
func TestUnusedWindowsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewRate(nil, time.Now, slog.New(slog.DiscardHandler))
		for i := range 3 * maxWindows {
			_, _ = l.Take(t.Context(), "op", fmt.Sprint(i), 10)
			time.Sleep(time.Second)
		}
		if len(l.windows) > maxWindows {
			t.Errorf("%d windows", len(l.windows))
		}
		// Those that are in use stay.
		l.windows = map[string]*window{"op full": {full: time.Now().Add(RateWindow)}}
		for i := range maxWindows {
			_, _ = l.Take(t.Context(), "op", fmt.Sprint(i), 10)
		}
		if _, full := l.windows["op full"]; len(l.windows) != maxWindows+1 || !full {
			t.Errorf("%d windows, that of a full minute is there: %v", len(l.windows), full)
		}
		// So does that of a request that is about to be counted.
		time.Sleep(RateWindow)
		begun := l.window("op begun")
		for i := range maxWindows + 1 {
			_, _ = l.Take(t.Context(), "op", fmt.Sprint("later", i), 10)
		}
		testkit.Equal(t, l.window("op begun"), begun, "the next request is counted in another window")
	})
}
