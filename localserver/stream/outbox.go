package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol/atomicfile"
	"hubbub/protocol/recovered"
)

const (
	// maxOutbox bounds what waits in an outbox, in bytes of events. A stream
	// that ends beyond it loses its events, which is counted and recorded. The
	// streams need no bound: none begins while the store is unavailable.
	maxOutbox = 64 << 20
	// outboxFile is the suffix of the files of an outbox, one for each stream.
	outboxFile = ".json"
)

// PendingFinish is what the store has yet to be told about a stream that is
// over.
type PendingFinish struct {
	Stream string `json:"stream"`
	// Events are those that are not known to be stored. First is the number of
	// the first one in its stream. Attempted is how many of them the store may
	// have already: they have to be appended again in one call.
	Events    []string     `json:"events,omitempty"`
	First     int          `json:"first"`
	Attempted int          `json:"trying,omitempty"`
	Status    store.Status `json:"status"`
	Cause     string       `json:"cause"`
	At        time.Time    `json:"at"` // of the end
}

func (p *PendingFinish) size() (n int64) {
	for _, e := range p.Events {
		n += int64(len(e))
	}
	return n
}

// valid reports whether a file named after a stream may hold p.
func (p *PendingFinish) valid(stream string) bool {
	return store.IsID(stream) && p.Stream == stream &&
		p.Status.Over() && p.First >= 0 && p.Attempted >= 0 && p.Attempted <= len(p.Events)
}

// Outbox holds the ends of streams that ended while the store was unavailable, and
// delivers them when it is back. With a folder they are on disk before the client gets
// its close frame, and the next process on the same folder delivers what this one could
// not.
type Outbox struct {
	store  Store
	folder string // "" keeps them in memory
	memory bool   // which is enough
	log    *slog.Logger
	lost   *atomic.Int64 // events
	limit  int64         // bytes of events

	mu      sync.Mutex
	waiting []*PendingFinish
	bytes   int64
	closing bool
	closed  bool // nothing is delivered any more

	wake   chan struct{}
	done   chan struct{} // closed when run has returned
	cancel context.CancelFunc
}

// OpenOutbox returns a running outbox, with what an earlier process left in
// the folder; "" keeps everything in memory, and memory says that this counts as kept.
// It adds to lost the events that cannot be delivered. Close ends it.
func OpenOutbox(s Store, folder string, memory bool, lost *atomic.Int64, log *slog.Logger) *Outbox {
	o := newOutbox(s, folder, memory, lost, log)
	if err := o.load(); err != nil {
		log.Error("the outbox could not be read completely", "error", err)
	}
	o.start()
	return o
}

func newOutbox(s Store, folder string, memory bool, lost *atomic.Int64, log *slog.Logger) *Outbox {
	return &Outbox{store: s, folder: folder, memory: memory, lost: lost, log: log, limit: maxOutbox,
		wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (o *Outbox) start() {
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	go o.run(ctx)
}

// Add takes the end of a stream. It does not wait for the store. It reports
// whether all of it is kept: on disk, if the outbox has a folder.
func (o *Outbox) Add(p *PendingFinish) (durable bool) {
	durable = o.folder != "" || o.memory
	o.mu.Lock()
	if o.bytes+p.size() > o.limit {
		o.lost.Add(int64(len(p.Events)))
		o.log.Error("events of a stream are lost: the outbox is full", "stream", p.Stream, "events", len(p.Events))
		p.Events, p.Attempted = nil, 0
		p.Status, p.Cause = store.Failed, causeEventsLost
		durable = false
	}
	o.bytes += p.size()
	o.mu.Unlock()
	if err := o.save(p); err != nil {
		o.log.Error("the end of a stream is kept in memory only", "stream", p.Stream, "error", err)
		durable = false
	}
	o.log.Warn("a stream has ended while the store is unavailable; it waits in the outbox", "stream", p.Stream, "events", len(p.Events))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.abandon(p)
		return durable
	}
	o.waiting = append(o.waiting, p)
	notify(o.wake)
	return durable
}

// Len is how many streams wait.
func (o *Outbox) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// Close waits until everything is delivered, or ctx ends, and then ends the
// outbox.
func (o *Outbox) Close(ctx context.Context) {
	o.mu.Lock()
	again := o.closing
	o.closing = true
	o.mu.Unlock()
	if again {
		return
	}
	notify(o.wake)
	waitFor(ctx, o.done)
	o.cancel()
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, p := range o.waiting {
		o.abandon(p)
	}
}

// abandon logs what happens to a stream that this process has not delivered.
func (o *Outbox) abandon(p *PendingFinish) {
	if o.folder != "" {
		o.log.Warn("the end of a stream waits in the data folder: start the server on it again when the cluster is back", "stream", p.Stream)
		return
	}
	o.lost.Add(int64(len(p.Events)))
	o.log.Error("the end of a stream is lost: it will read error", "stream", p.Stream, "events", len(p.Events))
}

// run delivers until Close, or until ctx is canceled.
func (o *Outbox) run(ctx context.Context) {
	defer close(o.done)
	for ctx.Err() == nil {
		o.mu.Lock()
		var next *PendingFinish
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
			case <-o.wake:
			case <-ctx.Done():
			}
			continue
		}
		err := recovered.Guard(func() error { return o.deliver(ctx, next) })
		if err == nil {
			o.remove(next)
			continue
		}
		o.log.Debug("the end of a stream waits for the store", "stream", next.Stream, "error", err)
		o.postpone() // so that one that fails delays no other
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
		}
	}
}

// deliver writes to the store what it does not have of one stream.
func (o *Outbox) deliver(ctx context.Context, p *PendingFinish) error {
	for len(p.Events) > 0 {
		if p.Attempted == 0 {
			p.Attempted = min(len(p.Events), batchSize)
		}
		batch := make([][]byte, p.Attempted)
		for i := range batch {
			batch[i] = []byte(p.Events[i])
		}
		call, cancel := context.WithTimeout(ctx, storeTimeout)
		err := o.store.Append(call, p.Stream, p.First, batch)
		cancel()
		if errors.Is(err, store.ErrConflict) {
			o.lost.Add(int64(len(p.Events)))
			o.log.Error("events of a stream are lost: other nodes considered this one dead and have ended the stream",
				"stream", p.Stream, "events", len(p.Events))
			o.drop(p, len(p.Events))
			p.Status, p.Cause = store.Failed, causeEventsLost
			break
		}
		if err != nil {
			return err
		}
		p.First += len(batch)
		o.drop(p, len(batch))
	}
	call, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := o.store.Finish(call, p.Stream, p.Status, p.At, p.Cause)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return nil // ended by an earlier attempt or by another node
	}
	return err
}

// drop removes the first n events of a stream.
func (o *Outbox) drop(p *PendingFinish, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := p.size()
	p.Events, p.Attempted = p.Events[n:], 0
	o.bytes -= before - p.size()
}

// remove removes the first stream, which is delivered.
func (o *Outbox) remove(p *PendingFinish) {
	o.mu.Lock()
	o.waiting = o.waiting[1:]
	o.mu.Unlock()
	if o.folder != "" {
		if err := os.Remove(o.file(p)); err != nil && !errors.Is(err, os.ErrNotExist) {
			o.log.Error("a file of the outbox cannot be removed", "stream", p.Stream, "error", err)
		}
	}
	o.log.Info("the end of a stream is stored", "stream", p.Stream, "status", string(p.Status))
}

// postpone moves the first stream to the end.
func (o *Outbox) postpone() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting[1:], o.waiting[0])
}

func (o *Outbox) file(p *PendingFinish) string { return filepath.Join(o.folder, p.Stream+outboxFile) }

// save writes the end of a stream to the folder.
func (o *Outbox) save(p *PendingFinish) error {
	if o.folder == "" {
		return nil
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.folder, 0o700); err != nil {
		return err
	}
	return atomicfile.WriteFile(o.file(p), raw, 0o600)
}

// load reads the folder. The error names the files that cannot be used, which
// are left in place.
func (o *Outbox) load() error {
	if o.folder == "" {
		return nil
	}
	entries, err := os.ReadDir(o.folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		stream, ok := strings.CutSuffix(e.Name(), outboxFile)
		if !ok { // a file that was being written
			continue
		}
		raw, err := os.ReadFile(filepath.Join(o.folder, e.Name()))
		p := &PendingFinish{}
		if err == nil {
			err = json.Unmarshal(raw, p)
		}
		if err == nil && !p.valid(stream) {
			err = errors.New("the file is damaged")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Name(), err))
			continue
		}
		o.waiting = append(o.waiting, p)
		o.bytes += p.size()
	}
	return errors.Join(errs...)
}
