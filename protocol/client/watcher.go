package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// Watcher receives the messages of a stream that another client sends: first all
// so far, then each new one. A lost connection is replaced by the policy in
// reconnect.go; the new one continues after the last message, so that no message
// is missing or repeated. When the sender has lost its stream and resumes it, the
// watcher follows to the new stream (follow.go).
//
// Updates delivers the messages of the stream as its sender receives them, and
// between them those of its state. A change says that the
// sender has lost its stream, or that a new one continues; timestamps are those of
// the first stream's clock. Wait says Completed when the stream is over, with the
// status of the stream as the text. Words says whether what is said was asked for.
//
// Its one goroutine ends with the stream, with a refusal, at the limit of
// reconnecting, or by Close. The caller must receive from Updates until it is
// closed, or call Close.
type Watcher struct {
	streamSession
	// Of the goroutine.
	id       string             // of the newest stream
	before   string             // of the stream that it resumes; "" = none
	bases    map[string]float64 // where the clocks of all streams so far begin, in seconds of the session
	got      int                // messages of the newest stream that the service stores
	received float64            // audio that the service has, in seconds of the session
}

// Watch begins to watch a stream of this account. ctx bounds the first
// connection, whose refusal is a *ResponseError; afterwards only Close ends the
// watcher early. limit bounds the time without a connection, and the wait for a
// sender that resumes. words asks for what is said in streams that have it.
func (c *Client) Watch(ctx context.Context, id string, limit time.Duration, words bool) (*Watcher, error) {
	first, err := c.openWatch(ctx, id, 0, words)
	if err != nil {
		return nil, err
	}
	w := &Watcher{streamSession: c.newStreamSession(words, limit, "Turns up to there are kept; watch the stream again later."),
		id: id, bases: map[string]float64{id: 0}}
	go w.run("watching the stream", func() { w.follow(first) })
	return w, nil
}

// Status is the state of the connection.
func (w *Watcher) Status() ConnectionStatus { return w.reconnect.state() }

// Close ends the watcher at once and returns when its goroutine has ended.
func (w *Watcher) Close() {
	w.cancel()
	<-w.over
}

// follow is the goroutine of the watcher.
func (w *Watcher) follow(stream *Stream) {
	defer func() {
		if stream != nil {
			stream.Close()
		}
	}()
	for {
		w.forward(stream)
		w.info = stream.Wait()
		if !retryAfterLoss(w.info, false, 0) {
			if stream = w.resumed(); stream == nil {
				return
			}
			continue
		}
		w.reconnect.lost(stream.opened, true, w.info.Err)
		err := w.reconnect.run(w.ctx, func(ctx context.Context) (_ attemptStep, err error) {
			stream, err = w.client.openWatch(ctx, w.id, w.got, w.words)
			return watching, err
		})
		if err != nil {
			w.info.Err = err
			return
		}
		w.reconnect.connected()
	}
}

// forward delivers the messages of a connection until its end. It counts those
// that the service stores: neither states nor error messages.
func (w *Watcher) forward(stream *Stream) {
	stop := context.AfterFunc(w.ctx, stream.Close)
	defer stop()
	for e := range stream.Events() {
		if !w.deliverEvents(w.place(e)) {
			stream.Close() // the end of ctx may have been seen before stop
			return
		}
		if e.Type != protocol.TypeStreamState && e.Type != protocol.TypeError {
			w.got++
		}
	}
}

// openWatch opens one connection to a stream that another client sends, after
// its first from messages.
func (c *Client) openWatch(ctx context.Context, id string, from int, words bool) (*Stream, error) {
	if !validID(id) {
		return nil, hint.Errorf("Give the id that the sender shows, at its start or under ?.",
			"%q is not the id of a stream", protocol.Clean(id, 64))
	}
	u := *c.base
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	u = *u.JoinPath("v1", "live", url.PathEscape(id), "events")
	query := url.Values{}
	if from > 0 {
		query.Set("from", strconv.Itoa(from))
	}
	if words {
		query.Set("words", "true")
	}
	u.RawQuery = query.Encode()
	s, err := c.open(ctx, &u, http.Header{"Authorization": {"Bearer " + c.key}}, true)
	if response, ok := errors.AsType[*ResponseError](err); ok {
		switch {
		case response.Status == http.StatusUnauthorized, response.Status == http.StatusForbidden && response.own:
			response.hint = "" // it is about the key, not about a token
		case response.Status == http.StatusNotFound && response.RequestID != "":
			response.hint = "A stream can be watched for two days, with a key of the account that sends it; check the id and the key."
		case response.Status == http.StatusNotFound, response.Status == http.StatusMethodNotAllowed:
			response.hint = "This service may not support watching: hubbub serve does; otherwise check --server."
		}
	}
	return s, err
}

// validID reports whether an id stays one segment of a path.
func validID(id string) bool {
	return strings.Trim(id, ".") != "" && !strings.ContainsAny(id, "/\\")
}
