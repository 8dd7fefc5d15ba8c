package localserver

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/localserver/store"
)

const (
	// maxOutbox bounds what waits in an outbox, in bytes of events; streams
	// that end beyond it lose theirs, which is counted and said in their
	// records.
	maxOutbox = 64 << 20
	// maxOutboxStreams bounds their number.
	maxOutboxStreams = 100_000
	// outboxCall bounds each call of a delivery.
	outboxCall = 5 * time.Second
	// outboxRetry is how long a store that does not answer is left alone.
	outboxRetry = time.Second
)

// remains are what the store has yet to be told of a stream that is over.
type remains struct {
	Stream string `json:"stream"`
	// Events are those that are not known to be kept. First is the number of
	// the first one in its stream, and Trying of how many of them the store may
	// have been told: they have to go together again.
	Events []string     `json:"events,omitempty"`
	First  int          `json:"first"`
	Trying int          `json:"trying,omitempty"`
	Status store.Status `json:"status"`
	Cause  string       `json:"cause"`
	At     time.Time    `json:"at"` // of the end
}

func (r *remains) size() (n int64) {
	for _, e := range r.Events {
		n += int64(len(e))
	}
	return n
}

// outbox keeps what became of streams that ended while the store was away, and
// brings it there when the store is back. With a folder it is on disk as well,
// from before the client is told that its stream is over, and the next run
// delivers what this one could not.
type outbox struct {
	journal  store.Journal
	sessions store.Sessions
	folder   string // "" keeps it in memory
	log      *slog.Logger
	lost     *atomic.Int64
	limit    int64 // of bytes

	mu      sync.Mutex
	waiting []*remains
	bytes   int64
	closing bool
	closed  bool // nobody delivers any more

	kick chan struct{}
	done chan struct{} // closed when run has returned
	cut  context.CancelFunc
}

func newOutbox(journal store.Journal, sessions store.Sessions, folder string, lost *atomic.Int64, log *slog.Logger) *outbox {
	return &outbox{journal: journal, sessions: sessions, folder: folder, lost: lost, log: log, limit: maxOutbox,
		kick: make(chan struct{}, 1), done: make(chan struct{})}
}

// put takes what remains to be told of a stream. It does not wait for the store.
func (o *outbox) put(r *remains) {
	o.mu.Lock()
	switch {
	case len(o.waiting) >= maxOutboxStreams:
		o.mu.Unlock()
		o.lost.Add(int64(len(r.Events)))
		o.log.Error("the end of a stream is not kept: too many wait for the store", "stream", r.Stream)
		return
	case o.bytes+r.size() > o.limit:
		o.lost.Add(int64(len(r.Events)))
		o.log.Error("events of a stream are not kept: too many wait for the store", "stream", r.Stream, "events", len(r.Events))
		r.Events, r.Trying = nil, 0
		r.Status, r.Cause = store.Failed, eventsLost
	}
	o.bytes += r.size()
	o.mu.Unlock()
	if err := o.save(r); err != nil {
		o.log.Error("what a stream left is kept in memory only", "stream", r.Stream, "error", err)
	}
	o.log.Warn("a stream has ended while the store is away; it will be told", "stream", r.Stream, "events", len(r.Events))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.leave(r)
		return
	}
	o.waiting = append(o.waiting, r)
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// count is how many streams wait.
func (o *outbox) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// close waits until everything is delivered, or ctx ends, and then ends run.
func (o *outbox) close(ctx context.Context) {
	o.mu.Lock()
	again := o.closing
	o.closing = true
	o.mu.Unlock()
	if again {
		return
	}
	o.wake()
	select {
	case <-o.done:
	case <-ctx.Done():
	}
	o.cut()
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, r := range o.waiting {
		o.leave(r)
	}
}

// leave says what becomes of one that this run has not delivered.
func (o *outbox) leave(r *remains) {
	if o.folder != "" {
		o.log.Warn("a stream's end waits in the data folder: start the server on it again when the cluster is back", "stream", r.Stream)
		return
	}
	o.lost.Add(int64(len(r.Events)))
	o.log.Error("a stream's end is lost: it will read error", "stream", r.Stream, "events", len(r.Events))
}

// run delivers until close, or until ctx ends.
func (o *outbox) run(ctx context.Context) {
	defer close(o.done)
	for ctx.Err() == nil {
		o.mu.Lock()
		var next *remains
		if len(o.waiting) > 0 {
			next = o.waiting[0]
		}
		closing := o.closing
		o.mu.Unlock()
		if next == nil {
			if closing {
				return
			}
			select {
			case <-o.kick:
			case <-ctx.Done():
			}
			continue
		}
		var err error
		if broken := guarded(func() { err = o.deliver(ctx, next) }); broken != nil {
			err = broken
		}
		if err == nil {
			o.drop(next)
			continue
		}
		o.log.Debug("the end of a stream waits for the store", "stream", next.Stream, "error", err)
		o.postpone() // whatever is wrong with one holds no other up
		select {
		case <-time.After(outboxRetry):
		case <-ctx.Done():
		}
	}
}

// deliver tells the store of one stream, as far as it does not know yet.
func (o *outbox) deliver(ctx context.Context, r *remains) error {
	for len(r.Events) > 0 {
		if r.Trying == 0 {
			r.Trying = min(len(r.Events), batchEvents)
		}
		batch := make([][]byte, r.Trying)
		for i := range batch {
			batch[i] = []byte(r.Events[i])
		}
		call, cancel := context.WithTimeout(ctx, outboxCall)
		err := o.journal.Append(call, r.Stream, r.First, batch)
		cancel()
		if errors.Is(err, store.ErrConflict) {
			o.lost.Add(int64(len(r.Events)))
			o.log.Error("events of a stream are lost: other nodes have ended it, thinking this one dead",
				"stream", r.Stream, "events", len(r.Events))
			o.release(r, len(r.Events))
			r.Status, r.Cause = store.Failed, eventsLost
			break
		}
		if err != nil {
			return err
		}
		r.First += len(batch)
		o.release(r, len(batch))
	}
	call, cancel := context.WithTimeout(ctx, outboxCall)
	defer cancel()
	err := o.sessions.Finish(call, r.Stream, r.Status, r.At, r.Cause)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return nil // it is over, by an earlier try or by others' hands
	}
	return err
}

// release forgets the first n events of one.
func (o *outbox) release(r *remains, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := r.size()
	r.Events, r.Trying = r.Events[n:], 0
	o.bytes -= before - r.size()
}

// drop forgets the first one: it is told.
func (o *outbox) drop(r *remains) {
	o.mu.Lock()
	o.waiting = o.waiting[1:]
	o.mu.Unlock()
	if err := o.unlink(r); err != nil {
		o.log.Error("what a stream left cannot be removed", "stream", r.Stream, "error", err)
	}
	o.log.Info("the end of a stream is kept", "stream", r.Stream, "status", string(r.Status))
}

func (o *outbox) postpone() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting[1:], o.waiting[0])
}

const (
	// outboxPatience is how long a server that stops tries to empty it, and
	// outboxSpare what of its time it leaves to the rest of stopping.
	outboxPatience = 20 * time.Second
	outboxSpare    = 2 * time.Second
)

// openOutbox starts the outbox of a server, with what an earlier run left.
func (s *Server) openOutbox() {
	folder := ""
	if s.options.DataDir != "" {
		folder = filepath.Join(s.options.DataDir, outboxFolder)
	}
	s.outbox = newOutbox(s.journal, s.sessions, folder, &s.count.lost, s.log)
	if err := s.outbox.load(); err != nil {
		s.log.Error("what an earlier run left cannot all be read", "error", err)
	}
	ctx, cut := context.WithCancel(context.Background())
	s.outbox.cut = cut
	go s.outbox.run(ctx)
}

// closeOutbox ends the outbox, once.
func (s *Server) closeOutbox(ctx context.Context) {
	if s.outbox == nil {
		return
	}
	patience := outboxPatience
	if at, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(at)-outboxSpare)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.outbox.close(ctx)
}
