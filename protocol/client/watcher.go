package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hubbub/hint"
	"hubbub/protocol"
)

// Watcher receives the messages of a stream that another client sends: first all
// so far, then each new one. A lost connection is replaced by the policy in
// reconnect.go; the new one continues after the last message, so that no message
// is missing or repeated.
//
// Its one goroutine ends with the stream, with a refusal, at the limit of
// reconnecting, or by Close. The caller must receive from Events until it is
// closed, or call Close.
type Watcher struct {
	client    *Client
	id        string
	reconnect reconnector
	events    chan protocol.Event
	cancel    context.CancelFunc
	over      chan struct{}
	info      CloseInfo // set before over is closed
}

// Watch begins to watch a stream of this account. ctx bounds the first
// connection, whose refusal is a *ResponseError; afterwards only Close ends the
// watcher early.
func (c *Client) Watch(ctx context.Context, id string) (*Watcher, error) {
	first, err := c.openWatch(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &Watcher{client: c, id: id, events: make(chan protocol.Event, c.config.eventQueue), cancel: cancel,
		reconnect: reconnector{limit: c.config.watchLimit, backOff: c.config.backOff, now: c.config.now,
			hint: "turns up to there are kept; watch the stream again later"},
		over: make(chan struct{})}
	go w.run(ctx, first)
	return w, nil
}

// Events delivers the messages of the stream as its sender receives them, and
// between them those that protocol.ParseStreamState reads. It is closed when the
// watcher has ended.
func (w *Watcher) Events() <-chan protocol.Event { return w.events }

// Wait blocks until the watcher has ended and says how: Completed when the
// stream is over, with the status of the stream as the text.
func (w *Watcher) Wait() CloseInfo {
	<-w.over
	return w.info
}

// Status is the state of the connection.
func (w *Watcher) Status() ConnectionStatus { return w.reconnect.state() }

// Close ends the watcher at once and returns when its goroutine has ended.
func (w *Watcher) Close() error {
	w.cancel()
	<-w.over
	return nil
}

func (w *Watcher) run(ctx context.Context, stream *Stream) {
	defer close(w.over)
	defer close(w.events)
	defer w.cancel()
	for got := 0; ; {
		got += w.forward(ctx, stream)
		w.info = stream.Wait()
		if ctx.Err() != nil {
			w.info = CloseInfo{Reason: Cancelled, Err: ctx.Err()}
			return
		}
		if !retryAfterLoss(w.info, false, 0) {
			return
		}
		w.reconnect.lost(stream.opened, w.info.Err)
		err := w.reconnect.run(ctx, func(ctx context.Context) (attemptStep, error) {
			ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
			defer cancel()
			next, err := w.client.openWatch(ctx, w.id, got)
			if err == nil {
				stream = next
			}
			return watching, err
		})
		if err != nil {
			w.info = CloseInfoOf(err)
			return
		}
		w.reconnect.connected()
	}
}

// forward delivers the messages of a connection until its end. It counts those
// that the service stores: neither states nor error messages.
func (w *Watcher) forward(ctx context.Context, stream *Stream) (n int) {
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer stop()
	for e := range stream.Events() {
		select {
		case w.events <- e:
			if e.Type != protocol.TypeStreamState && e.Type != protocol.TypeError {
				n++
			}
		case <-ctx.Done():
			return n
		}
	}
	return n
}

// openWatch opens one connection to a stream that another client sends, after
// its first from messages.
func (c *Client) openWatch(ctx context.Context, id string, from int) (*Stream, error) {
	if !validID(id) {
		return nil, hint.Errorf("give the id that the sender shows: hubbub live prints it at the start, and under ?",
			"%q is not the id of a stream", protocol.Clean(id, 64))
	}
	u := *c.base
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	u = *u.JoinPath("v1", "live", url.PathEscape(id), "events")
	if from > 0 {
		u.RawQuery = "from=" + strconv.Itoa(from)
	}
	s, err := c.open(ctx, &u, http.Header{"Authorization": {"Bearer " + c.key}}, true)
	var response *ResponseError
	if errors.As(err, &response) {
		response.hint = watchHint(response)
	}
	return s, err
}

// validID reports whether an id stays one segment of a path.
func validID(id string) bool {
	return strings.Trim(id, ".") != "" && !strings.ContainsAny(id, "/\\")
}

// watchHint is what to do about a refusal; "" = by the status.
func watchHint(e *ResponseError) string {
	switch {
	case e.Status == http.StatusUnauthorized:
		return "check the API key (--api-key or HUBBUB_API_KEY): it is missing, wrong or expired"
	case e.Status == http.StatusNotFound && e.RequestID != "":
		return "a stream can be watched for two days, with a key of the account that sends it; check the id and the key"
	case e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed:
		return "this service may not support watching: hubbub serve does; otherwise check --server"
	}
	return e.hint
}
