package localserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"hubbub/localserver/store"
)

const (
	// leaseInterval is how often a node renews its lease and checks the leases
	// of the others.
	leaseInterval = 1500 * time.Millisecond
	// maxUnchanged is how many checks in a row may see the same lease of a node
	// before the node is dead. With the interval in which it died and the one
	// that notices, that is at most 12 s; 15 s are promised.
	maxUnchanged = 6
	// leaseTimeout bounds one check.
	leaseTimeout = 2 * time.Second
	// leaseStale is after how long without a check a node is not ready.
	leaseStale = 4 * leaseInterval
)

// leaseMonitor renews this node's lease and monitors those of the others.
//
// Only checks in which this node itself could write and read count: when the
// store is unavailable or elects a leader, nobody can renew a lease, so nobody
// is considered dead. Wall clocks are not compared.
type leaseMonitor struct {
	node   string
	leases store.Leases
	log    *slog.Logger

	mu      sync.Mutex
	checked time.Time // when a check last succeeded
	others  map[string]*nodeState

	died chan struct{} // signals that a node has died
}

// nodeState is what is known about another node.
type nodeState struct {
	revision  uint64 // of its lease
	unchanged int    // consecutive checks that saw this revision, or no lease at all
	reaped    bool   // its streams are ended
}

func (n *nodeState) dead() bool { return n.unchanged >= maxUnchanged }

func newLeaseMonitor(node string, leases store.Leases, log *slog.Logger) *leaseMonitor {
	return &leaseMonitor{node: node, leases: leases, log: log,
		others: map[string]*nodeState{}, died: make(chan struct{}, 1)}
}

// check renews this node's lease and reads those of the others.
func (m *leaseMonitor) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
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
func (m *leaseMonitor) update(revisions map[string]uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checked = time.Now()
	for node, revision := range revisions {
		switch n := m.others[node]; {
		case node == m.node:
		case n == nil:
			m.others[node] = &nodeState{revision: revision}
		case n.revision != revision:
			*n = nodeState{revision: revision}
		}
	}
	for node, n := range m.others {
		revision, held := revisions[node]
		if !held || revision == n.revision {
			n.unchanged++
		}
		if n.unchanged == maxUnchanged {
			m.log.Warn("a node of the cluster is dead: it does not renew its lease", "dead", node)
		}
		switch {
		case n.dead() && !n.reaped:
			m.signalDeath()
		case n.reaped && !held:
			delete(m.others, node)
		}
	}
}

func (m *leaseMonitor) signalDeath() {
	select {
	case m.died <- struct{}{}:
	default:
	}
}

// dead reports whether a node is dead. One that was never seen may have just
// started: its checks count from now on.
func (m *leaseMonitor) dead(node string) bool {
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

// deadNodes are the dead nodes whose streams are not ended yet.
func (m *leaseMonitor) deadNodes() (nodes []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for node, n := range m.others {
		if n.dead() && !n.reaped {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// setReaped notes that the streams of some dead nodes are ended.
func (m *leaseMonitor) setReaped(nodes []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, node := range nodes {
		if n := m.others[node]; n != nil && n.dead() {
			n.reaped = true
		}
	}
}

// fresh reports whether a check succeeded recently.
func (m *leaseMonitor) fresh() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.checked) < leaseStale
}
