package localserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/localserver/store"
)

const (
	// waitingEvents is how many events of a stream wait for the store; what
	// comes on top is counted as lost, and the session will say so.
	waitingEvents = 10000
	// batchEvents is how many go to the store in one call.
	batchEvents = 500
	// retryAfter is how long a store that failed is left alone.
	retryAfter = time.Second
	// renewEvery keeps the record of a running stream from expiring.
	renewEvery = time.Hour
	// pulseEvery is how often those who follow a stream are told how far it is.
	pulseEvery = 500 * time.Millisecond
)

// journal keeps a stream's events in the store, beside the way to the client:
// a store that is slow or away does not hold the stream up.
type journal struct {
	store    store.Journal
	sessions store.Sessions
	id       string
	log      *slog.Logger
	announce func(store.Pulse) error // to those who follow; nil = to nobody
	heard    atomic.Int64            // audio received, a time.Duration

	mu      sync.Mutex
	waiting [][]byte
	trying  int // of the waiting ones, those whose fate in the store is not known
	kept    int // events in the store
	lost    int
	closing bool
	fenced  bool // others have ended the stream in the store: nothing can follow

	kick   chan struct{}   // something is waiting, or the end
	done   chan struct{}   // closed when run has returned
	life   context.Context // ended when finish gives up
	giveUp context.CancelFunc
}

func newJournal(s store.Journal, sessions store.Sessions, id string, log *slog.Logger) *journal {
	life, giveUp := context.WithCancel(context.Background())
	return &journal{store: s, sessions: sessions, id: id, log: log,
		kick: make(chan struct{}, 1), done: make(chan struct{}), life: life, giveUp: giveUp}
}

// add takes one event. It never waits.
func (j *journal) add(raw []byte) {
	j.mu.Lock()
	if len(j.waiting) < waitingEvents && !j.fenced {
		j.waiting = append(j.waiting, raw)
	} else {
		j.lost++
	}
	j.mu.Unlock()
	j.wake()
}

func (j *journal) wake() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// drain says that no more events come, and waits until there is nothing left
// to try, or ctx ends. It reports which; after ctx, run goes on.
func (j *journal) drain(ctx context.Context) bool {
	j.mu.Lock()
	j.closing = true
	j.mu.Unlock()
	j.wake()
	select {
	case <-j.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// finish waits until every event is in the store, or ctx ends. An error means
// that some are not. Afterwards run is over.
func (j *journal) finish(ctx context.Context) error {
	if !j.drain(ctx) {
		j.giveUp()
		<-j.done
	}
	j.giveUp()
	j.mu.Lock()
	defer j.mu.Unlock()
	if missing := j.lost + len(j.waiting); missing > 0 {
		return fmt.Errorf("%d events are missing", missing)
	}
	return nil
}

// rest ends run at once and returns what is not known to be kept, and whether
// events are lost for good. It is for who takes over from here.
func (j *journal) rest() (r remains, whole bool) {
	j.giveUp()
	<-j.done
	j.mu.Lock()
	defer j.mu.Unlock()
	r = remains{Stream: j.id, First: j.kept, Trying: j.trying}
	for _, raw := range j.waiting {
		r.Events = append(r.Events, string(raw))
	}
	j.waiting = nil
	return r, j.lost == 0
}

// run moves events to the store until finish.
func (j *journal) run() {
	defer close(j.done)
	if err := guarded(func() { j.move(j.life) }); err != nil {
		j.log.Error("panic in a stream's journal", "error", err)
	}
}

func (j *journal) move(ctx context.Context) {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	pulse := time.NewTicker(pulseEvery)
	defer pulse.Stop()
	for {
		over, err := j.once(ctx)
		if over {
			return
		}
		var retry <-chan time.Time
		if err != nil {
			j.log.Warn("events wait for the store", "error", err)
			retry = time.After(retryAfter)
		}
		kick := j.kick
		if err != nil {
			kick = nil // one try a second is enough, however many events come
		}
		for resting := true; resting; {
			select {
			case <-ctx.Done():
				return
			case <-kick:
				resting = false
			case <-retry:
				resting = false
			case <-pulse.C:
				j.pulse(false)
			case <-renew.C:
				if err := j.sessions.Renew(ctx, j.id); err != nil {
					j.log.Warn("the record of a stream could not be renewed", "error", err)
				}
			}
		}
	}
}

// once moves what is waiting. It reports whether there will be no more.
func (j *journal) once(ctx context.Context) (over bool, err error) {
	for {
		j.mu.Lock()
		if j.trying == 0 {
			j.trying = min(len(j.waiting), batchEvents)
		}
		batch := j.waiting[:j.trying] // after a failure the same one again
		first, closing := j.kept, j.closing
		j.mu.Unlock()
		if len(batch) == 0 {
			return closing, nil
		}
		call, cancel := context.WithTimeout(ctx, storeTimeout)
		err := j.store.Append(call, j.id, first, batch)
		cancel()
		if errors.Is(err, store.ErrConflict) {
			j.fence()
			continue
		}
		if err != nil {
			return false, err
		}
		j.mu.Lock()
		j.waiting = j.waiting[len(batch):]
		j.trying = 0
		j.kept += len(batch)
		j.mu.Unlock()
		j.pulse(false)
	}
}

// pulse tells those who follow the stream how far it is. That nobody hears it
// is no trouble: they look by themselves, too, if less often.
func (j *journal) pulse(over bool) {
	if j.announce == nil {
		return
	}
	j.mu.Lock()
	kept := j.kept
	j.mu.Unlock()
	_ = j.announce(store.Pulse{Kept: kept, Heard: time.Duration(j.heard.Load()), Over: over})
}

// fence gives up what waits and what will come: this node was thought dead,
// and the others have written down the stream's end.
func (j *journal) fence() {
	j.log.Error("events of a stream are no longer kept: other nodes have ended it, thinking this one dead")
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fenced = true
	j.lost += len(j.waiting)
	j.waiting, j.trying = nil, 0
}
