package localserver

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"hubbub/localserver/limits"
	"hubbub/localserver/store"
	"hubbub/localserver/stream"
	"hubbub/protocol"
)

const (
	// watchPath is where a stream is watched.
	watchPath = "/v1/live/{id}/events"
	// maxAccountWatchers bounds the watchers of one account on a node.
	maxAccountWatchers = 64
	// A node takes watchersPerStream watchers for each of its streams at most, and at
	// least minWatchers.
	watchersPerStream = 4
	minWatchers       = 16
)

// watchStream is GET /v1/live/{id}/events. Any number of clients with a key of
// the stream's account can watch it, on any node, within the limits of the
// node.
func (s *Server) watchStream(w http.ResponseWriter, r *http.Request) error {
	from, words, err := watchQuery(r.URL.Query())
	if err == nil {
		err = checkUpgrade(w, r)
	}
	if err != nil {
		return err
	}
	account, key := caller(r.Context()).Account, caller(r.Context()).Key
	rec, err := s.findStream(r)
	if err != nil {
		return err
	}
	switch s.watchers.Acquire(account) {
	case limits.ErrStopping:
		return refused(http.StatusServiceUnavailable, "The server is stopping and takes no new watchers")
	case limits.ErrFull:
		return refused(http.StatusTooManyRequests, "Too many watchers at once; try again later")
	}
	defer s.watchers.Release(account)
	log := s.log.With("stream", rec.ID, "request", requestID(r.Context()))
	conn, err := upgrader.Upgrade(w, r, w.Header().Clone()) // responds by itself when it fails
	if err != nil {
		log.Info("handshake failed", "error", err)
		return nil
	}
	defer func() { _ = conn.Close() }()
	stream.NewWatcher(stream.WatcherConfig{
		ID: rec.ID, Revoked: func() bool { return s.keys.Revoked(key) }, From: from, Words: words, Log: log, Store: s.store, Counters: &s.counters,
		Record: func(ctx context.Context) (store.Stream, error) { return s.record(ctx, rec.ID) },
	}, conn).Run(s.ctx, s.watchers.Drain())
	return nil
}

// watchQuery returns how many messages the watcher has already, and whether it asks
// for words.
func watchQuery(query url.Values) (from int, words bool, err error) {
	if query.Has("from") {
		if from, err = strconv.Atoi(query.Get("from")); err != nil || from < 0 {
			return 0, false, protocol.Invalid("from", "must be a whole number, 0 or more: how many messages are there already")
		}
	}
	if !isBool(query.Get("words")) {
		return 0, false, protocol.Invalid("words", "must be true or false")
	}
	return from, query.Get("words") == "true", nil
}

// isBool reports whether the parameter of an address is true, false or not given.
func isBool(text string) bool { return text == "" || text == "false" || text == "true" }
