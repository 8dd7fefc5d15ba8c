package protocol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// watchConfig holds how a Watch comes back, so that tests can shorten it.
type watchConfig struct {
	first  time.Duration // the wait before the first new attempt
	most   time.Duration // the longest wait between two
	giveUp time.Duration // without a connection
}

func defaultWatchConfig() watchConfig {
	return watchConfig{first: 500 * time.Millisecond, most: 10 * time.Second, giveUp: 3 * time.Minute}
}

// WatchStats is how a Watch stands.
type WatchStats struct {
	Connected bool
	// Lost counts the connections that broke, Trouble says why the last one
	// did, or why there is none yet again; "" while there is one.
	Lost    int
	Trouble string
	// RTT is the newest round trip of a ping; 0 before the first.
	RTT time.Duration
}

// Watch follows a stream that somebody else sends: first what was said so far,
// then what is said. A connection that breaks is replaced by a new one, which
// continues where the old one ended, so that no message is lost or doubled.
//
// Its one goroutine ends with the stream, with a refusal, when there has been
// no connection for too long, or by Close. Somebody must receive from Events
// until it is closed, or call Close.
type Watch struct {
	client *Client
	id     string
	config watchConfig
	events chan Event
	cancel context.CancelFunc
	over   chan struct{}
	info   CloseInfo // set before over is closed

	mu     sync.Mutex
	stats  WatchStats
	stream *Stream
}

// Watch begins to follow a stream of this account. ctx bounds the beginning,
// in which a refusal is an *APIError; afterwards only Close ends it early.
func (c *Client) Watch(ctx context.Context, id string) (*Watch, error) {
	first, err := c.openWatch(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &Watch{client: c, id: id, config: c.watch, events: make(chan Event, c.stream.queue), cancel: cancel,
		over: make(chan struct{}), stream: first, stats: WatchStats{Connected: true}}
	go w.run(life, first)
	return w, nil
}

// Events delivers the stream's messages, as its sender gets them, and between
// them those that ParseStreamState reads. It is closed when the watch is over.
func (w *Watch) Events() <-chan Event { return w.events }

// Wait blocks until the watch is over and tells how: Completed when the stream
// is, with the service's word on how that went as the text.
func (w *Watch) Wait() CloseInfo {
	<-w.over
	return w.info
}

// Stats is how the watch stands.
func (w *Watch) Stats() WatchStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.stats
	if w.stream != nil {
		st.RTT = w.stream.Stats().RTT
	}
	return st
}

// Close ends the watch at once and returns when its goroutines have.
func (w *Watch) Close() error {
	w.cancel()
	<-w.over
	return nil
}

func (w *Watch) run(ctx context.Context, stream *Stream) {
	defer close(w.over)
	defer close(w.events)
	defer w.cancel()
	for got := 0; ; {
		n := w.carry(ctx, stream)
		got += n
		w.info = stream.Wait()
		if ctx.Err() != nil {
			w.info = CloseInfo{Reason: Cancelled, Err: ctx.Err()}
			return
		}
		if w.info.Reason == Completed && w.info.Code == websocket.CloseNormalClosure {
			return
		}
		w.lost(w.info)
		var err error
		if stream, err = w.again(ctx, got); err != nil {
			w.info = CloseInfoOf(err)
			return
		}
		w.mu.Lock()
		w.stats.Connected, w.stats.Trouble, w.stream = true, "", stream
		w.mu.Unlock()
	}
}

// carry hands on what a connection brings, until its end, and counts the
// stream's own messages.
func (w *Watch) carry(ctx context.Context, stream *Stream) (n int) {
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer stop()
	for e := range stream.Events() {
		select {
		case w.events <- e:
			if e.Type != TypeStreamState {
				n++
			}
		case <-ctx.Done():
			return n
		}
	}
	return n
}

func (w *Watch) lost(why CloseInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Connected, w.stream = false, nil
	w.stats.Lost++
	w.stats.Trouble = CodeMeaning(why.Code)
	if why.Err != nil {
		w.stats.Trouble = why.Err.Error()
	}
}

// again opens a new connection behind the messages that there are: with longer
// and longer waits, as the service asks, and not for ever. What it will not
// take back is returned as an error.
func (w *Watch) again(ctx context.Context, got int) (*Stream, error) {
	began, wait := time.Now(), w.config.first
	for {
		// Half of it by chance: many watchers lose a server at once.
		if err := w.client.wait(ctx, wait/2+rand.N(wait/2+1)); err != nil {
			return nil, err
		}
		stream, err := w.client.openWatch(ctx, w.id, got)
		if err == nil {
			return stream, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		wait = min(2*wait, w.config.most)
		var answer *APIError
		if errors.As(err, &answer) {
			if answer.Status < 500 && answer.Status != http.StatusTooManyRequests && answer.Status != http.StatusRequestTimeout {
				return nil, err
			}
			if answer.RetryAfter <= maxRetryAfter {
				wait = max(wait, answer.RetryAfter)
			}
		}
		if since := time.Since(began); since > w.config.giveUp {
			return nil, &hinted{fmt.Errorf("the connection was lost, and for %s there was no new one: %w", since.Round(time.Second), err), hintOf(err)}
		}
		w.mu.Lock()
		w.stats.Trouble = err.Error()
		w.mu.Unlock()
	}
}

// openWatch opens one connection to a stream that somebody else sends, behind
// the first from messages.
func (c *Client) openWatch(ctx context.Context, id string, from int) (*Stream, error) {
	if strings.Trim(id, ".") == "" || strings.ContainsAny(id, "/\\") {
		return nil, withHint(hintWatchID, "%q is not the id of a stream", Clean(id, 64))
	}
	u := *c.base
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	u = *u.JoinPath("v1", "live", url.PathEscape(id), "events")
	if from > 0 {
		u.RawQuery = "from=" + strconv.Itoa(from)
	}
	s, err := c.open(ctx, &u, http.Header{"Authorization": {"Bearer " + c.key}}, true)
	var answer *APIError
	if errors.As(err, &answer) {
		answer.hint = watchHint(answer)
	}
	return s, err
}

const hintWatchID = "give the id as its sender shows it: hubbub live names it when it begins, and under ?"

// watchHint is what to do about a refusal; "" leaves it to the status.
func watchHint(e *APIError) string {
	switch {
	case e.Status == http.StatusUnauthorized:
		return "check the API key (--api-key or HUBBUB_API_KEY): it is missing, wrong or expired"
	case e.Status == http.StatusNotFound && e.RequestID != "":
		return "streams can be watched with a key of the account that sends them, for two days; check the id and the key"
	case e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed:
		return "this service may not let streams be watched: hubbub serve does; else check --server"
	}
	return e.hint
}
