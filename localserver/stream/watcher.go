package stream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/recovered"
)

const (
	// pollInterval is how often a watcher reads the record of a stream that
	// publishes no progress: its node may be dead, or not yet chosen.
	pollInterval = 2 * time.Second
	// slowTimeout is how long a watcher with a full queue may not read.
	slowTimeout = 5 * time.Second
)

// WatcherConfig is what a watcher needs of its server.
type WatcherConfig struct {
	ID   string // of the stream
	From int    // how many messages the client has already
	// Words says that the client asked for what is said.
	Words bool
	Log   *slog.Logger
	Store Store
	// Record returns the current record of the stream, or store.ErrNotFound.
	Record   func(ctx context.Context) (store.Stream, error)
	Counters *Counters
	// Revoked reports whether the API key of the watcher was revoked.
	Revoked func() bool
}

// Watcher is one connection that watches a stream.
//
// It is independent of the Stream that runs: it reads what that stream's
// journal has written to the store. So it works on every node, also gets the
// events from before it connected, and cannot delay the stream. The progress that the
// stream publishes tells it when to read. It has three goroutines: reader, writer, and the one that runs it,
// which ends the others.
type Watcher struct {
	config  WatcherConfig
	log     *slog.Logger
	writer  *writer
	wake    chan struct{} // progress has arrived
	newest  atomic.Pointer[store.Progress]
	errors  chan string // error messages of the stream that were not sent yet
	failing bool        // the last attempt to read the store has failed

	seen     int    // messages for the client so far, those that it had included
	stored   int    // messages of the stream so far
	entry    uint64 // of the store, up to which they reach
	sent     protocol.StreamState
	received time.Duration // audio of the stream, as of the newest progress whose events were sent
}

// watcherLeft ends a watcher whose client is gone.
var watcherLeft = ending{cause: "the watcher has left"}

// NewWatcher returns a watcher for an open connection. Run must be called.
func NewWatcher(c WatcherConfig, conn Socket) *Watcher {
	return &Watcher{config: c, log: c.Log, writer: newWriter(conn, c.Log),
		wake: make(chan struct{}, 1), errors: make(chan string, maxErrors)}
}

// Run watches the stream until it ends or the client disconnects. Closing drain
// ends the watcher after it has sent what is stored; canceling ctx disconnects
// it.
func (w *Watcher) Run(ctx context.Context, drain <-chan struct{}) {
	w.config.Counters.Watchers.Add(1)
	w.log.Info("watcher connected", "from", w.config.From)
	began := time.Now()
	defer w.writer.start(ctx, w.read)()

	var end ending
	if err := recovered.Guard(func() error { end = w.follow(ctx, drain); return nil }); err != nil {
		w.log.Error("panic while a stream was watched", "error", err)
		end = ending{code: websocket.CloseInternalServerErr, text: "internal error", cause: "internal error"}
	}
	if end.code == websocket.CloseTryAgainLater {
		// The client will ask again for what is queued. The frame that is being
		// written has its deadline; the close frame can be sent only after it.
		w.writer.discard()
		w.writer.finish(end)
		select {
		case <-w.writer.done:
		case <-w.writer.readerDone:
		}
	} else {
		w.writer.finish(end)
	}
	w.writer.close(end)
	w.log.Info("watcher disconnected", "cause", end.cause, "messages", max(w.seen-w.config.From, 0),
		"duration", time.Since(began).Round(time.Millisecond))
}

// read reads what the client sends: pongs and its close frame.
func (w *Watcher) read() { _ = frames(w.writer.conn, maxText, func(int, io.Reader) {}) }

// subscribe receives the progress of the stream until stop.
func (w *Watcher) subscribe() (stop func()) {
	stop, err := w.config.Store.SubscribeProgress(w.config.ID, func(p store.Progress) {
		for _, message := range p.Errors {
			select {
			case w.errors <- message:
			default:
				w.config.Counters.WatchErrors.Add(1)
			}
		}
		w.newest.Store(&p)
		notify(w.wake)
	})
	if err != nil {
		w.log.Warn("the progress of a stream cannot be received", "error", err) // polling replaces them
		return func() {}
	}
	return stop
}

// follow sends what is stored and then what is added, and returns how to end
// the connection.
func (w *Watcher) follow(ctx context.Context, drain <-chan struct{}) ending {
	defer w.subscribe()()
	poll := time.NewTimer(0)
	defer poll.Stop()
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	stopping := false
	for {
		select {
		case <-w.wake:
			if p := w.newest.Load(); !p.Over {
				if _, end := w.forward(ctx, protocol.StatusRunning); end != nil {
					return *end
				}
				poll.Reset(pollInterval)
				continue
			}
		case <-poll.C:
		case <-drain:
			drain, stopping = nil, true
		case <-check.C:
			if w.config.Revoked() {
				return ending{code: keyRevoked.code, text: keyRevoked.text, cause: keyRevoked.cause}
			}
			continue
		case <-w.writer.readerDone:
			return watcherLeft
		case <-ctx.Done():
			return ending{cause: shutdown.cause}
		}
		poll.Reset(pollInterval)
		if end := w.forwardRecord(ctx); end != nil {
			return *end
		}
		if stopping {
			return ending{code: websocket.CloseGoingAway, text: shutdown.text, cause: shutdown.cause}
		}
	}
}

// forwardRecord sends what is stored, and returns how to end the connection if the
// stream is over; nil if it is not. First it reads the record, then the events: if
// the record says that the stream is over, the events are complete.
func (w *Watcher) forwardRecord(ctx context.Context) *ending {
	rec, err := w.config.Record(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound): // it has expired
		return &ending{code: websocket.CloseNormalClosure, text: "no longer kept", cause: "no longer kept"}
	case err != nil:
		w.retried("the record of a watched stream could not be read; it is retried", err)
		return nil
	}
	complete, end := w.forward(ctx, string(rec.Status))
	if end == nil && complete && rec.Status.Over() {
		return streamOver(rec)
	}
	return end
}

// streamOver ends a watcher whose stream is over. For a watcher that is a
// normal end, however the stream ended; the text says how.
func streamOver(rec store.Stream) *ending {
	text := string(rec.Status)
	if rec.Status != store.Done && rec.Cause != "" {
		text += ": " + rec.Cause
	}
	text = strings.ToValidUTF8(text[:min(len(text), protocol.MaxCloseText)], "")
	return &ending{code: websocket.CloseNormalClosure, text: text, cause: "the stream is over"}
}

// forward sends what is stored and not yet sent, and then the error messages and
// the progress of the stream. It reports whether that was everything stored so far. An
// end that is not nil says how to disconnect the client.
func (w *Watcher) forward(ctx context.Context, status string) (complete bool, end *ending) {
	progress := w.newest.Load()
	for {
		call, cancel := context.WithTimeout(ctx, storeTimeout)
		messages, entry, err := w.config.Store.Since(call, w.config.ID, w.entry)
		cancel()
		if err != nil {
			// The reported progress stays where it is, so that the client does
			// not take an unavailable store for silence.
			w.retried("the events of a watched stream could not be read; it is retried", err)
			return false, nil
		}
		if len(messages) == 0 {
			break
		}
		for _, raw := range messages {
			if end := w.pass(ctx, raw); end != nil {
				return false, end
			}
		}
		w.entry = entry
	}
	w.failing = false
	if progress != nil && w.stored >= progress.Stored {
		w.received = max(w.received, progress.Received)
	}
	for len(w.errors) > 0 {
		if end := w.send(ctx, protocol.NewErrorEvent(<-w.errors).Raw); end != nil {
			return false, end
		}
	}
	return true, w.sendState(ctx, status)
}

// pass sends a message of the stream, unless the client has it already or did not ask
// for it.
func (w *Watcher) pass(ctx context.Context, raw []byte) *ending {
	w.stored++
	if e, err := protocol.ParseEvent(raw); err == nil { // a text has no timestamp
		w.received = max(w.received, time.Duration(e.Timestamp*float64(time.Second)))
		if !w.config.Words && e.Type == protocol.TypeText {
			return nil
		}
	}
	if w.seen >= w.config.From {
		if end := w.send(ctx, raw); end != nil {
			return end
		}
	}
	w.seen++
	return nil
}

// retried logs an error of the store, of consecutive ones the first.
func (w *Watcher) retried(what string, err error) {
	if !w.failing {
		w.log.Warn(what, "error", err)
	}
	w.failing = true
}

// send queues a message and waits for room as long as the client reads. An end that
// is not nil says how to disconnect it.
func (w *Watcher) send(ctx context.Context, raw []byte) *ending {
	timeout := time.NewTimer(slowTimeout)
	defer timeout.Stop()
	select {
	case w.writer.queue <- message{raw: raw}:
		return nil
	case <-timeout.C:
		w.config.Counters.SlowWatchers.Add(1)
		return &ending{code: websocket.CloseTryAgainLater, text: "the watcher reads too slowly", cause: "the watcher does not read"}
	case <-w.writer.done:
	case <-w.writer.readerDone:
	case <-ctx.Done():
	}
	return &watcherLeft
}

// sendState sends the progress of the stream if it has changed. A client whose
// queue is full gets the next one instead, while there is one. An end that is not nil
// says how to disconnect it.
func (w *Watcher) sendState(ctx context.Context, status string) *ending {
	state := protocol.StreamState{Status: status, Timestamp: protocol.Round1ms(w.received.Seconds())}
	if state == w.sent || status == protocol.StatusRunning && len(w.writer.queue) == cap(w.writer.queue) {
		return nil
	}
	w.sent = state
	return w.send(ctx, protocol.NewStreamStateEvent(state).Raw)
}
