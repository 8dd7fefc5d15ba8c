// Package lease tells the nodes of a cluster which of them are dead.
package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Interval is how often a node renews its lease and checks the leases
	// of the others.
	Interval = 1500 * time.Millisecond
	// maxUnchanged is how many checks in a row may see the same lease of a node
	// before the node is dead. With the interval in which it died and the one
	// in which the others notice, that is at most 12 s; the documents promise 15 s.
	maxUnchanged = 6
	// Timeout bounds one check.
	Timeout = 2 * time.Second
	// stale is after how long without a check a node is not ready.
	stale = 4 * Interval
)

// Leases is what a Monitor needs of the store.
type Leases interface {
	Hold(ctx context.Context, node string) error
	Holders(ctx context.Context) (map[string]uint64, error)
}

// Monitor renews this node's lease and monitors those of the others.
//
// Only checks in which this node itself could write and read count: when the
// store is unavailable or elects a leader, nobody can renew a lease, so nobody
// is considered dead. Wall clocks are not compared.
type Monitor struct {
	node   string
	leases Leases
	log    *slog.Logger

	mu        sync.Mutex
	checked   time.Time // when a check last succeeded
	others    map[string]*nodeState
	forgotten map[string]bool // since the newest check began, which may have read their leases
}

// nodeState is what is known about another node.
type nodeState struct {
	revision  uint64 // of its lease
	unchanged int    // consecutive checks that saw this revision, or no lease at all
}

func (n *nodeState) dead() bool { return n.unchanged >= maxUnchanged }

// New returns the Monitor of a node. Check is to be called every Interval.
func New(node string, leases Leases, log *slog.Logger) *Monitor {
	return &Monitor{node: node, leases: leases, log: log, others: map[string]*nodeState{}, forgotten: map[string]bool{}}
}

// Check renews this node's lease and reads those of the others.
func (m *Monitor) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	m.mu.Lock()
	clear(m.forgotten)
	m.mu.Unlock()
	if err := m.leases.Hold(ctx, m.node); err != nil {
		return err
	}
	revisions, err := m.leases.Holders(ctx)
	if err != nil {
		return err
	}
	m.update(revisions)
	return nil
}

// update evaluates the leases of one check.
func (m *Monitor) update(revisions map[string]uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checked = time.Now()
	for node, revision := range revisions {
		switch n := m.others[node]; {
		case node == m.node, m.forgotten[node]:
		case n == nil:
			m.others[node] = &nodeState{revision: revision}
		case n.revision != revision:
			*n = nodeState{revision: revision}
		}
	}
	for node, n := range m.others {
		if n.unchanged++; n.unchanged != maxUnchanged {
			continue
		}
		if _, held := revisions[node]; held {
			m.log.Warn("a node of the cluster is dead: it does not renew its lease", "dead", node)
		} else { // it was stopped, or others have ended its streams
			m.log.Info("a node has left the cluster", "left", node)
		}
	}
}

// Dead reports whether a node is dead. One that was never seen may have just
// started: its checks count from now on.
func (m *Monitor) Dead(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.others[node]
	switch {
	case node == m.node:
		return false
	case n == nil:
		m.others[node] = &nodeState{}
		return false
	}
	return n.dead()
}

// DeadNodes are the dead nodes.
func (m *Monitor) DeadNodes() (nodes []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for node, n := range m.others {
		if n.dead() {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// Forget forgets a node that is still dead: its streams are ended, and its lease is
// released.
func (m *Monitor) Forget(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.others[node]; n != nil && n.dead() {
		delete(m.others, node)
		m.forgotten[node] = true
	}
}

// Fresh reports whether a check succeeded recently.
func (m *Monitor) Fresh() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.checked) < stale
}
