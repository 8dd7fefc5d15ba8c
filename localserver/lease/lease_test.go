package lease

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol/testkit"
)

// fakeLeases are leases in memory that can be unavailable.
type fakeLeases struct {
	mu          sync.Mutex
	revisions   map[string]uint64
	unavailable bool
	read        func() // what happens after the leases are read; nil = nothing
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
	revisions := maps.Clone(f.revisions)
	f.mu.Unlock()
	if f.read != nil {
		f.read()
	}
	return revisions, nil
}

func (f *fakeLeases) set(unavailable bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unavailable = unavailable
}

// monitors runs a lease monitor for each node; stop ends one of them.
func monitors(t *testing.T, f *fakeLeases, nodes ...string) (m map[string]*Monitor, stop map[string]context.CancelFunc) {
	m, stop = map[string]*Monitor{}, map[string]context.CancelFunc{}
	for _, node := range nodes {
		ctx, cancel := context.WithCancel(t.Context())
		monitor := New(node, f, slog.New(slog.DiscardHandler))
		m[node], stop[node] = monitor, cancel
		go func() {
			tick := time.NewTicker(Interval)
			defer tick.Stop()
			for {
				_ = monitor.Check(t.Context()) // also at the moment of its end
				if ctx.Err() != nil {
					return
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		}()
	}
	return m, stop
}

// A node that does not renew its lease is dead within 12 s, and no earlier than
// after 6 s. The others know it once, and a node that comes back is alive.
func TestLeaseMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLeases{revisions: map[string]uint64{}}
		m, stop := monitors(t, f, "a", "b", "c")
		time.Sleep(time.Hour)
		for name, node := range m {
			if len(node.DeadNodes()) != 0 || !node.Fresh() || node.Dead(name) {
				t.Errorf("%s: %v are dead", name, node.DeadNodes())
			}
		}
		stop["c"]()
		time.Sleep(6 * time.Second)
		if m["a"].Dead("c") {
			t.Error("c is dead too early")
		}
		time.Sleep(6 * time.Second)
		for _, name := range []string{"a", "b"} {
			if got := m[name].DeadNodes(); !m[name].Dead("c") || !slices.Equal(got, []string{"c"}) {
				t.Errorf("%s: %v are dead", name, got)
			}
		}
		if m["c"].Fresh() {
			t.Error("a node without a check is ready")
		}

		// Its streams are ended, by a.
		_ = f.Release(t.Context(), "c")
		m["a"].Forget("c")
		m["a"].Forget("b") // is alive
		time.Sleep(time.Minute)
		if m["a"].Dead("c") { // forgotten
			t.Error("c is remembered")
		}
		if got := m["a"].DeadNodes(); len(got) != 0 || m["a"].Dead("b") {
			t.Errorf("%v are dead again", got)
		}
		// A node that nobody has seen counts from now on.
		if m["a"].Dead("unknown") {
			t.Error("an unknown node is dead at once")
		}
		time.Sleep(12 * time.Second)
		if !m["a"].Dead("unknown") || m["b"].Dead("unknown") {
			t.Error("an unknown node is not dead after 12 s")
		}
		m["c"], stop["c"] = New("c", f, slog.New(slog.DiscardHandler)), func() {}
		testkit.NoError(t, m["c"].Check(t.Context()))
		time.Sleep(2 * Interval)
		if m["a"].Dead("c") || m["b"].Dead("c") {
			t.Error("c is dead although it is back")
		}
		stop["a"]()
		stop["b"]()
	})
}

// Only a node that still has its lease is reported as dead: one that was stopped has
// released it.
func TestStoppedNodeIsNotReportedAsDead(t *testing.T) {
	f, log := &fakeLeases{revisions: map[string]uint64{"dead": 1, "stopped": 1}}, &bytes.Buffer{}
	m := New("a", f, slog.New(slog.NewTextHandler(log, nil)))
	testkit.NoError(t, m.Check(t.Context()))
	_ = f.Release(t.Context(), "stopped")
	for range maxUnchanged {
		testkit.NoError(t, m.Check(t.Context()))
	}
	if !m.Dead("dead") || !m.Dead("stopped") { // a stream that names it would not end otherwise
		t.Errorf("%v are dead", m.DeadNodes())
	}
	text := log.String()
	if strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "dead=dead") || !strings.Contains(text, "left=stopped") {
		t.Errorf("log: %s", text)
	}
}

// A dead node is not remembered by a check that has read its lease before it was
// forgotten.
func TestForgottenDuringACheck(t *testing.T) {
	f := &fakeLeases{revisions: map[string]uint64{"dead": 1}}
	m := New("a", f, slog.New(slog.DiscardHandler))
	check := func() {
		t.Helper()
		testkit.NoError(t, m.Check(t.Context()))
	}
	for range maxUnchanged {
		check()
	}
	if !m.Dead("dead") {
		t.Fatal("it is not dead")
	}
	f.read = func() {
		f.read = nil
		_ = f.Release(t.Context(), "dead")
		m.Forget("dead")
	}
	for range 2 * maxUnchanged {
		check()
	}
	if got := m.DeadNodes(); len(got) != 0 {
		t.Errorf("%v are dead again", got)
	}
	// When it comes back, it is monitored like any other.
	f.revisions["dead"] = 2
	check()
	if m.Forget("dead"); m.others["dead"] == nil {
		t.Error("a node that lives is forgotten")
	}
	for range maxUnchanged - 1 {
		check()
	}
	if !m.Dead("dead") {
		t.Error("a node that was forgotten and came back does not die again")
	}
}

// While the store is unavailable no node is dead, and none is ready.
func TestNoNodeIsDeadWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLeases{revisions: map[string]uint64{}}
		m, stop := monitors(t, f, "a", "b")
		time.Sleep(time.Minute)
		f.set(true)
		time.Sleep(time.Hour)
		if m["a"].Dead("b") || m["b"].Dead("a") || m["a"].Fresh() {
			t.Error("a node is dead, or ready")
		}
		f.set(false)
		time.Sleep(time.Minute)
		if m["a"].Dead("b") || m["b"].Dead("a") || !m["a"].Fresh() {
			t.Error("a node is dead, or not ready")
		}
		stop["a"]()
		stop["b"]()
	})
}
