package localserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"hubbub/localserver/store"
	"hubbub/localserver/stream"
	"hubbub/protocol"
)

const (
	// watchPath is where a stream is watched.
	watchPath = "/v1/live/{id}/events"
	// maxAccountWatchers bounds the watchers of one account on a node.
	maxAccountWatchers = 64
)

// watchStream is GET /v1/live/{id}/events. Any number of clients with a key of
// the stream's account can watch it, on any node, within the limits of the
// node.
func (s *Server) watchStream(w http.ResponseWriter, r *http.Request) {
	from, invalid := watchFrom(r.URL.Query())
	if invalid != nil {
		respond(w, http.StatusBadRequest, invalid)
		return
	}
	if !checkUpgrade(w, r) {
		return
	}
	account := caller(r.Context()).Account
	rec, err := s.record(r.Context(), r.PathValue("id"))
	if s.refuseRecord(w, r, rec, err) {
		return
	}
	err = s.watchers.acquire()
	if err == nil {
		defer s.watchers.release()
		if s.watcherQuota.acquire(account) {
			defer s.watcherQuota.release(account)
		} else {
			err = errFull
		}
	}
	switch {
	case errors.Is(err, errStopping):
		refuse(w, r, http.StatusServiceUnavailable, "The server is stopping and takes no new watchers")
		return
	case err != nil:
		refuse(w, r, http.StatusTooManyRequests, "Too many watchers at once; try again later")
		return
	}
	log := s.log.With("stream", rec.ID, "request", requestID(r.Context()))
	conn, err := upgrader.Upgrade(w, r, w.Header().Clone()) // answers by itself when it fails
	if err != nil {
		log.Info("handshake failed", "error", err)
		return
	}
	defer func() { _ = conn.Close() }()
	revoked, remove := s.opened.add(caller(r.Context()).Key)
	defer remove()
	stream.NewWatcher(stream.WatcherConfig{
		ID: rec.ID, Revoked: revoked, From: from, Log: log, Feed: s.feed, Counters: &s.counters,
		Record: func(ctx context.Context) (store.Session, error) { return s.record(ctx, rec.ID) },
	}, conn).Run(s.ctx, s.watchers.drain)
}

// watchFrom returns how many messages the watcher has already.
func watchFrom(query url.Values) (int, *protocol.ValidationErrorResponse) {
	const field = "from"
	if !query.Has(field) {
		return 0, nil
	}
	from, err := strconv.Atoi(query.Get(field))
	if err != nil || from < 0 || len(query[field]) != 1 {
		return 0, &protocol.ValidationErrorResponse{Message: "The request is not valid",
			Errors: []protocol.ValidationError{{Field: field, Message: "must be a whole number, 0 or more: how many messages are there already"}}}
	}
	return from, nil
}
