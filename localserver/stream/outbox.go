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
	// the first one in its stream.
	Events []string     `json:"events,omitempty"`
	First  int          `json:"first"`
	Status store.Status `json:"status"`
	Cause  string       `json:"cause"`
	At     time.Time    `json:"at"` // of the end
}

func (p *PendingFinish) size() (n int64) {
	for _, e := range p.Events {
		n += int64(len(e))
	}
	return n
}

// valid reports whether a file named after a stream may hold p.
func (p *PendingFinish) valid(stream string) bool {
	return store.IsID(stream) && p.Stream == stream && p.Status.Over() && p.First >= 0
}

// Outbox holds the ends of streams that ended while the store was unavailable. The
// journal of each one is continued until the store has everything. With a folder they are
// on disk before the client gets its close frame, and the next process on the same folder
// delivers what this one could not.
type Outbox struct {
	store  Store
	folder string // "" keeps them in memory
	memory bool   // which is enough
	log    *slog.Logger
	lost   *atomic.Int64 // events
	limit  int64         // bytes of events

	mu         sync.Mutex
	waiting    int // streams
	bytes      int64
	closed     bool // to more streams
	delivering sync.WaitGroup
	ctx        context.Context // canceled when nothing is delivered any more
	cancel     context.CancelFunc
}

// OpenOutbox returns a running outbox, with what an earlier process left in
// the folder; "" keeps everything in memory, and memory says that this counts as kept.
// It adds to lost the events that cannot be delivered. Close ends it.
func OpenOutbox(s Store, folder string, memory bool, lost *atomic.Int64, log *slog.Logger) *Outbox {
	o := &Outbox{store: s, folder: folder, memory: memory, lost: lost, log: log, limit: maxOutbox}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	pending, err := o.load()
	if err != nil {
		log.Error("the outbox could not be read completely", "error", err)
	}
	for _, p := range pending {
		o.bytes += p.size()
		o.start(p)
	}
	return o
}

// Add takes the end of a stream. It does not wait for the store. It reports
// whether all of it is kept: on disk, if the outbox has a folder.
func (o *Outbox) Add(p *PendingFinish) (durable bool) {
	durable = o.memory
	if !o.hold(p) {
		o.lost.Add(int64(len(p.Events)))
		o.log.Error("events of a stream are lost: the outbox is full", "stream", p.Stream, "events", len(p.Events))
		p.Events = nil
		p.Status, p.Cause = store.Failed, causeEventsLost
		durable = false
	}
	if err := o.save(p); err != nil {
		o.log.Error("the end of a stream is kept in memory only", "stream", p.Stream, "error", err)
		durable = false
	}
	o.log.Warn("a stream has ended while the store is unavailable; it waits in the outbox", "stream", p.Stream, "events", len(p.Events))
	o.start(p)
	return durable
}

// hold counts the events of a stream if there is room for them, and reports whether there
// is.
func (o *Outbox) hold(p *PendingFinish) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	fits := o.bytes+p.size() <= o.limit
	if fits {
		o.bytes += p.size()
	}
	return fits
}

// start starts the delivery of a stream.
func (o *Outbox) start(p *PendingFinish) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.abandon(p, len(p.Events))
		return
	}
	o.waiting++
	o.delivering.Go(func() { o.deliver(p) })
}

// deliver writes to the store what it does not have of one stream.
func (o *Outbox) deliver(p *PendingFinish) {
	size := p.size()
	j := newJournal(o.store, p.Stream, o.lost, o.log.With("stream", p.Stream))
	defer context.AfterFunc(o.ctx, j.cancel)()
	for _, e := range p.Events {
		j.waiting = append(j.waiting, []byte(e))
	}
	p.Events = nil
	j.stored = p.First
	j.finish(ending{status: p.Status, cause: p.Cause}, p.At)
	j.run()
	o.mu.Lock()
	o.waiting--
	o.bytes -= size
	o.mu.Unlock()
	if !j.recorded {
		o.abandon(p, len(j.waiting))
		return
	}
	if o.folder != "" {
		if err := os.Remove(o.file(p)); err != nil && !errors.Is(err, os.ErrNotExist) {
			o.log.Error("a file of the outbox cannot be removed", "stream", p.Stream, "error", err)
		}
	}
	o.log.Info("the end of a stream is stored", "stream", p.Stream, "status", string(j.end.status))
}

// Len is how many streams wait.
func (o *Outbox) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting
}

// Close waits until everything is delivered, or ctx ends, and then ends the
// outbox.
func (o *Outbox) Close(ctx context.Context) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	defer context.AfterFunc(ctx, o.cancel)()
	o.delivering.Wait()
	o.cancel()
}

// abandon logs what happens to a stream of which this process has not delivered so many
// events.
func (o *Outbox) abandon(p *PendingFinish, events int) {
	if o.folder != "" {
		o.log.Warn("the end of a stream waits in the data folder: start the server on it again when the cluster is back", "stream", p.Stream)
		return
	}
	o.lost.Add(int64(events))
	o.log.Error("the end of a stream is lost: it will read error", "stream", p.Stream, "events", events)
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
func (o *Outbox) load() (pending []*PendingFinish, err error) {
	entries, err := os.ReadDir(o.folder)
	if errors.Is(err, os.ErrNotExist) { // also without a folder
		return nil, nil
	}
	if err != nil {
		return nil, err
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
		pending = append(pending, p)
	}
	return pending, errors.Join(errs...)
}
