package localserver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"hubbub/localserver/store"
)

const (
	// leaseEvery is how often a node says that it lives and looks whether the
	// others do.
	leaseEvery = 1500 * time.Millisecond
	// leaseRounds is how many rounds in a row a node may miss. Together with
	// the round in which it died and the one that finds it, that is at most
	// 12 s; 15 s are promised.
	leaseRounds = 6
	// leaseCall bounds each call of a round.
	leaseCall = 2 * time.Second
	// firstRound bounds how long a node that starts tries to hold its lease.
	firstRound = 20 * time.Second
	// leaseStale is after how long without a round a node says that it is not
	// ready.
	leaseStale = 4 * leaseEvery
	// buryTimeout bounds the ending of a dead node's streams in one go.
	buryTimeout = 30 * time.Second
)

// watchman holds this node's lease and watches those of the others.
//
// Only rounds count in which this node itself could write and read: when the
// store is away, or chooses a new leader, nobody can renew a lease, and so
// nobody is taken for dead. Wall clocks are not compared.
type watchman struct {
	node   string
	leases store.Leases
	log    *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	last   time.Time
	others map[string]*watched

	died chan struct{} // a kick: somebody is newly dead
	over sync.WaitGroup
}

// watched is what is known of another node.
type watched struct {
	mark   uint64
	missed int // rounds in a row without a new mark
	buried bool
}

func newWatchman(node string, leases store.Leases, log *slog.Logger) *watchman {
	return &watchman{node: node, leases: leases, log: log, now: time.Now,
		others: map[string]*watched{}, died: make(chan struct{}, 1)}
}

// run makes a round at once and then again and again until ctx ends.
func (w *watchman) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	failing := false
	for {
		var err error
		if broken := guarded(func() { err = w.round(ctx) }); broken != nil {
			err = broken
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			w.log.Warn("the lease of this node could not be renewed", "error", err)
		case err == nil && failing:
			w.log.Info("the lease of this node is renewed again")
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// round makes this node's mark and looks at the others'.
func (w *watchman) round(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, leaseCall)
	defer cancel()
	if err := w.leases.Hold(call, w.node); err != nil {
		return err
	}
	marks, err := w.leases.Holders(call)
	if err != nil {
		return err
	}
	w.seen(marks)
	return nil
}

// seen takes in the marks of one round.
func (w *watchman) seen(marks map[string]uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = w.now()
	for node, mark := range marks {
		switch o := w.others[node]; {
		case node == w.node:
		case o == nil:
			w.others[node] = &watched{mark: mark}
		case o.mark != mark:
			*o = watched{mark: mark}
		}
	}
	for node, o := range w.others {
		if mark, ok := marks[node]; ok && mark == o.mark || !ok {
			o.missed++
		}
		if o.missed == leaseRounds {
			w.log.Warn("a node of the cluster is dead: its lease is not renewed", "dead", node)
		}
		_, marked := marks[node]
		switch {
		case o.missed >= leaseRounds && !o.buried:
			w.kick()
		case o.buried && !marked:
			delete(w.others, node)
		}
	}
}

func (w *watchman) kick() {
	select {
	case w.died <- struct{}{}:
	default:
	}
}

// dead tells whether a node has missed its rounds. One that was never seen has
// perhaps just started: its rounds are counted from now on.
func (w *watchman) dead(node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.others[node]
	switch {
	case node == w.node:
		return false
	case o == nil:
		w.others[node] = &watched{}
		return false
	}
	return o.missed >= leaseRounds
}

// bury notes that nothing of some dead nodes is left.
func (w *watchman) bury(nodes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range nodes {
		if o := w.others[node]; o != nil && o.missed >= leaseRounds {
			o.buried = true
		}
	}
}

// corpses are the dead nodes that may have left something.
func (w *watchman) corpses() (nodes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for node, o := range w.others {
		if o.missed >= leaseRounds && !o.buried {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// fresh tells whether the last round is not long ago.
func (w *watchman) fresh() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now().Sub(w.last) < leaseStale
}

// watch starts the watchman and the gravedigger of a node on a shared store.
// It returns once the node's own lease is held.
func (s *Server) watch(ctx context.Context) error {
	s.watchman = newWatchman(s.node, s.store, s.log)
	s.limiter.away = func() bool { return !s.watchman.fresh() }
	// A cluster that is just starting may need some rounds until one succeeds.
	first, cancel := context.WithTimeout(ctx, firstRound)
	defer cancel()
	for err := s.watchman.round(first); err != nil; err = s.watchman.round(first) {
		select {
		case <-first.Done():
			return err
		case <-time.After(leaseEvery / 10):
		}
	}
	s.watchman.over.Go(func() { s.watchman.run(s.watching, s.options.leaseEvery) })
	s.watchman.over.Go(s.dig)
	s.watchman.kick() // to find nodes that died before this one started
	return nil
}

// dig ends the streams of dead nodes, whenever there are newly dead ones.
func (s *Server) dig() {
	for {
		select {
		case <-s.watching.Done():
			return
		case <-s.watchman.died:
		}
		var err error
		if broken := guarded(func() { err = s.buryDead() }); broken != nil {
			err = broken
		}
		if err != nil && s.watching.Err() == nil {
			s.log.Error("streams of a dead node could not be ended yet", "error", err) // the next round kicks again
		}
	}
}

func (s *Server) buryDead() error {
	ctx, cancel := context.WithTimeout(s.watching, buryTimeout)
	defer cancel()
	dead := s.watchman.corpses()
	left, err := s.store.Running(ctx, s.watchman.dead)
	if err != nil {
		return err
	}
	for _, rec := range left {
		if err := bury(ctx, s.sessions, s.store, rec, s.now().UTC(), deadNode); err != nil {
			return err
		}
		s.log.Info("stream of a dead node ended", "stream", rec.ID, "dead", rec.Node)
	}
	s.watchman.bury(dead)
	// Their marks go last; who comes back makes a new one.
	var errs []error
	for _, node := range dead {
		errs = append(errs, s.store.Release(ctx, node))
	}
	return errors.Join(errs...)
}

// deadNode is the cause of death of such a stream.
const deadNode = "the node that ran the stream died"

// lookAfter returns the record as it has to read: that of a stream whose node
// is dead says so, also before anybody has tidied up.
func (s *Server) lookAfter(ctx context.Context, rec store.Session) (store.Session, error) {
	if rec.Status != store.Running || s.watchman == nil || !s.watchman.dead(rec.Node) {
		return rec, nil
	}
	if err := bury(ctx, s.sessions, s.store, rec, s.now().UTC(), deadNode); err != nil {
		return rec, err
	}
	return s.sessions.Get(ctx, rec.ID)
}

// unwatch ends watchman and gravedigger, and gives the lease back: a node that
// stops in order has ended its streams.
func (s *Server) unwatch() {
	s.stopWatching()
	if s.watchman == nil {
		return
	}
	s.watchman.over.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), leaseCall)
	defer cancel()
	if err := s.store.Release(ctx, s.node); err != nil {
		s.log.Info("the lease of this node could not be given back", "error", err)
	}
}
