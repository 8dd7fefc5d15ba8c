package localserver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeLeases are leases in memory that can be unavailable.
type fakeLeases struct {
	mu          sync.Mutex
	revisions   map[string]uint64
	unavailable bool
}

func (f *fakeLeases) Hold(_ context.Context, node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unavailable {
		return errors.New("unavailable")
	}
	f.revisions[node]++
	return nil
}

func (f *fakeLeases) Release(_ context.Context, node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.revisions, node)
	return nil
}

func (f *fakeLeases) Holders(context.Context) (map[string]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.revisions), nil
}

func (f *fakeLeases) set(unavailable bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unavailable = unavailable
}

// monitors runs a lease monitor for each node; stop ends one of them.
func monitors(t *testing.T, f *fakeLeases, nodes ...string) (m map[string]*leaseMonitor, stop map[string]context.CancelFunc) {
	m, stop = map[string]*leaseMonitor{}, map[string]context.CancelFunc{}
	for _, node := range nodes {
		ctx, cancel := context.WithCancel(t.Context())
		m[node], stop[node] = newLeaseMonitor(node, f, slog.New(slog.DiscardHandler)), cancel
		go task{leaseInterval, m[node].check}.run(ctx, "lease", slog.New(slog.DiscardHandler))
	}
	return m, stop
}

// A node that does not renew its lease is dead within 12 s, and no earlier than
// after 6 s. The others are told once, and a node that comes back is alive.
func TestLeaseMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLeases{revisions: map[string]uint64{}}
		m, stop := monitors(t, f, "a", "b", "c")
		time.Sleep(time.Hour)
		for name, node := range m {
			if len(node.deadNodes()) != 0 || !node.fresh() || node.dead(name) {
				t.Errorf("%s: %v are dead", name, node.deadNodes())
			}
		}
		stop["c"]()
		time.Sleep(6 * time.Second)
		if m["a"].dead("c") {
			t.Error("c is dead too early")
		}
		time.Sleep(6 * time.Second)
		synctest.Wait() // a check of this moment would tell again that c is dead
		for _, name := range []string{"a", "b"} {
			select {
			case <-m[name].died:
			default:
				t.Errorf("%s is not told", name)
			}
			if got := m[name].deadNodes(); !m[name].dead("c") || !slices.Equal(got, []string{"c"}) {
				t.Errorf("%s: %v are dead", name, got)
			}
		}
		if m["c"].fresh() {
			t.Error("a node without a check is ready")
		}

		// Its streams are ended, by a.
		m["a"].setReaped([]string{"c", "b"}) // b is alive
		_ = f.Release(t.Context(), "c")
		time.Sleep(time.Minute)
		if m["a"].dead("c") { // forgotten
			t.Error("c is remembered")
		}
		if len(m["a"].died) != 0 || m["a"].dead("b") {
			t.Error("a is told again")
		}
		// A node that nobody has seen counts from now on.
		if m["a"].dead("unknown") {
			t.Error("an unknown node is dead at once")
		}
		time.Sleep(12 * time.Second)
		if !m["a"].dead("unknown") || m["b"].dead("unknown") {
			t.Error("an unknown node is not dead after 12 s")
		}
		m["c"], stop["c"] = newLeaseMonitor("c", f, slog.New(slog.DiscardHandler)), func() {}
		if err := m["c"].check(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * leaseInterval)
		if m["a"].dead("c") || m["b"].dead("c") {
			t.Error("c is dead although it is back")
		}
		stop["a"]()
		stop["b"]()
	})
}

// While the store is unavailable nobody dies, and no node is ready.
func TestNobodyDiesWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLeases{revisions: map[string]uint64{}}
		m, stop := monitors(t, f, "a", "b")
		time.Sleep(time.Minute)
		f.set(true)
		time.Sleep(time.Hour)
		if m["a"].dead("b") || m["b"].dead("a") || m["a"].fresh() {
			t.Error("a node is dead, or ready")
		}
		f.set(false)
		time.Sleep(time.Minute)
		if m["a"].dead("b") || m["b"].dead("a") || !m["a"].fresh() {
			t.Error("a node is dead, or not ready")
		}
		stop["a"]()
		stop["b"]()
	})
}

// A task that fails or panics goes on, and ends with its context.
func TestTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logBuffer{}
		logger := slog.New(slog.NewTextHandler(log, nil))
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		go task{time.Second, func(context.Context) error {
			switch n++; n {
			case 2, 3:
				return errors.New("no answer")
			case 4:
				panic("broken")
			}
			return nil
		}}.run(ctx, "some task", logger)
		time.Sleep(10*time.Second + time.Millisecond)
		cancel()
		synctest.Wait()
		time.Sleep(time.Minute)
		if n != 11 {
			t.Errorf("%d times", n)
		}
		if got := log.count("a background task fails"); got != 1 || log.count("works again") != 1 {
			t.Errorf("the log: %s", log)
		}
	})
}
