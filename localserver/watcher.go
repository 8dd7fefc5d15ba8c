package localserver

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

// watcher is one connection that follows a stream.
//
// It has nothing to do with the stream's session: it reads what the session's
// journal has put into the store, so that it works on every node, sees the past
// as well as the present, and can hold nobody up. Pulses tell it when to look.
// Three goroutines belong to it: reader, writer, and the one that runs it,
// which ends the others.
type watcher struct {
	server *Server
	id     string
	log    *slog.Logger
	conn   *websocket.Conn
	writer *writer
	read   chan struct{} // closed when the reader has returned
	kick   chan struct{} // a pulse has come
	newest atomic.Pointer[store.Pulse]

	skip  int    // messages that the client has already
	seen  int    // messages of the stream so far, skipped ones included
	entry uint64 // of the store, up to which they reach
	told  protocol.StreamState
	heard time.Duration // of the stream, by the newest pulse that was caught up with
}

// What can end a watcher beside the stream.
var (
	errWatcherLeft = errors.New("the watcher has left")
	errWatcherSlow = errors.New("the watcher does not read")
)

func (s *Server) newWatcher(id string, conn *websocket.Conn, from int, log *slog.Logger) *watcher {
	return &watcher{server: s, id: id, log: log, conn: conn, skip: from,
		writer: newWriter(conn, log, s.options.pingEvery, s.options.writeTimeout),
		read:   make(chan struct{}), kick: make(chan struct{}, 1)}
}

// run follows the stream to its end, or as long as the client is there.
func (w *watcher) run(life context.Context, drain <-chan struct{}) {
	w.server.count.watched.Add(1)
	w.log.Info("watcher came", "from", w.skip)
	began := time.Now()
	cut := context.AfterFunc(life, func() { cutOff(w.conn) })
	defer cut()
	go w.listen()
	go w.writer.run(w.read)

	var end ending
	if err := guarded(func() { end = w.follow(life, drain) }); err != nil {
		w.log.Error("panic while a stream was watched", "error", err)
		end = ending{code: websocket.CloseInternalServerErr, text: "internal error", cause: "internal error"}
	}
	if end.code == websocket.CloseTryAgainLater {
		// What is queued will be asked for again. The frame that is stuck has
		// its deadline; only behind it the close can leave.
		w.writer.drop()
		w.writer.finish(end)
		select {
		case <-w.writer.done:
		case <-w.read:
		}
	} else {
		w.writer.finish(end)
	}
	w.writer.hangUp(end, w.read)
	w.log.Info("watcher left", "cause", end.cause, "messages", max(w.seen-w.skip, 0), "duration", time.Since(began).Round(time.Millisecond))
}

// listen reads what the client sends, which has nothing to say but pongs and
// its close.
func (w *watcher) listen() {
	defer close(w.read)
	patience := func(string) error { return w.conn.SetReadDeadline(time.Now().Add(w.server.options.readTimeout)) }
	w.conn.SetReadLimit(maxText)
	w.conn.SetPongHandler(patience)
	for {
		_ = patience("") // fails only with the connection, and then so does the next call
		if _, _, err := w.conn.NextReader(); err != nil {
			return
		}
	}
}

// follow brings the client what is kept and then what comes, and returns how
// the connection is to be ended.
func (w *watcher) follow(life context.Context, drain <-chan struct{}) ending {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	stop, err := w.server.feed.Listen(w.id, func(p store.Pulse) {
		w.newest.Store(&p)
		select {
		case w.kick <- struct{}{}:
		default:
		}
	})
	if err != nil {
		w.log.Warn("pulses of a stream cannot be heard", "error", err) // the clock below looks by itself
		stop = func() {}
	}
	defer stop()
	look := time.NewTimer(0)
	defer look.Stop()
	stopping := false
	for {
		select {
		case <-w.kick:
			if p := w.newest.Load(); !p.Over {
				if _, end := w.forward(ctx, protocol.StatusRunning); end != nil {
					return *end
				}
				look.Reset(w.server.options.watchEvery)
				continue
			}
		case <-look.C:
		case <-drain:
			drain, stopping = nil, true
		case <-w.read:
			return ending{cause: errWatcherLeft.Error()}
		case <-life.Done():
			return ending{cause: "the server was stopped"}
		}
		look.Reset(w.server.options.watchEvery)
		// First the record, then what is kept: when the one says that the
		// stream is over, the other is complete.
		status, over, cause, err := w.server.watchable(ctx, w.id)
		switch {
		case errors.Is(err, store.ErrNotFound): // its time is over
			return ending{code: websocket.CloseNormalClosure, text: "no longer kept", cause: "no longer kept"}
		case err != nil:
			w.log.Warn("a stream that is watched could not be looked up", "error", err)
		default:
			whole, end := w.forward(ctx, status)
			switch {
			case end != nil:
				return *end
			case over && whole:
				return overFor(status, cause)
			}
		}
		if stopping {
			return ending{code: websocket.CloseGoingAway, text: stopped.text, cause: stopped.cause}
		}
	}
}

// overFor is the end of a watcher whose stream is over. That is a normal end of
// watching, whatever became of the stream; the text tells.
func overFor(status, cause string) ending {
	text := status
	if status != protocol.StatusDone && cause != "" {
		text += ": " + cause
	}
	const most = 123 // bytes of a close frame's text (RFC 6455, 5.5)
	text = strings.ToValidUTF8(text[:min(len(text), most)], "")
	return ending{code: websocket.CloseNormalClosure, text: text, cause: "the stream is over"}
}

// forward sends what is kept and has not been sent, and then how far the
// stream is. It reports whether that was all that is kept by now; an end says
// that the client is to be given up, and how.
func (w *watcher) forward(ctx context.Context, status string) (whole bool, end *ending) {
	pulse := w.newest.Load()
	for {
		call, cancel := context.WithTimeout(ctx, storeTimeout)
		messages, entry, err := w.server.feed.Since(call, w.id, w.entry)
		cancel()
		if err != nil {
			// The clock stands still meanwhile: nobody is told that there was
			// silence where the store was.
			w.log.Warn("events of a stream that is watched could not be read", "error", err)
			return false, nil
		}
		if len(messages) == 0 {
			break
		}
		for _, raw := range messages {
			if w.seen >= w.skip {
				if err := w.offer(ctx, raw); err != nil {
					end := w.givenUp(err)
					return false, &end
				}
			}
			w.seen++
		}
		w.entry = entry
		if e, err := protocol.ParseEvent(messages[len(messages)-1]); err == nil {
			w.heard = max(w.heard, time.Duration(e.Timestamp*float64(time.Second)))
		}
	}
	if pulse != nil && w.seen >= pulse.Kept {
		w.heard = max(w.heard, pulse.Heard)
	}
	w.tell(status)
	return true, nil
}

// offer queues a message and waits for room, while the client takes anything.
func (w *watcher) offer(ctx context.Context, raw []byte) error {
	m := message{raw: raw}
	select {
	case w.writer.queue <- m:
		return nil
	default:
	}
	patience := time.NewTimer(w.server.options.slowAfter)
	defer patience.Stop()
	select {
	case w.writer.queue <- m:
		return nil
	case <-patience.C:
		return errWatcherSlow
	case <-w.writer.done:
	case <-w.read:
	case <-ctx.Done():
	}
	return errWatcherLeft
}

func (w *watcher) givenUp(err error) ending {
	if !errors.Is(err, errWatcherSlow) {
		return ending{cause: err.Error()}
	}
	w.server.count.slowWatchers.Add(1)
	return ending{code: websocket.CloseTryAgainLater, text: "the watcher reads too slowly", cause: err.Error()}
}

// tell says how far the stream is, when that is new. A client that is behind
// is spared it: it will hear the next one.
func (w *watcher) tell(status string) {
	state := protocol.StreamState{Status: status, Timestamp: protocol.Round1ms(w.heard.Seconds())}
	if state == w.told {
		return
	}
	select {
	case w.writer.queue <- message{raw: protocol.NewStreamStateEvent(state).Raw}:
		w.told = state
	default:
	}
}
