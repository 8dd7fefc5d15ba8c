package localserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hubbub/protocol"
)

const (
	// watchPath is where a stream is followed.
	watchPath = "/v1/live/{id}/events"
	// maxAccountWatchers bounds those of one account on a node.
	maxAccountWatchers = 64
	// watchEvery is how often a watcher looks at the stream's record when it
	// hears no pulse: the node that runs the stream may be dead, or not yet
	// chosen.
	watchEvery = 2 * time.Second
	// slowAfter is how long a watcher with a full queue may take nothing.
	slowAfter = 5 * time.Second
)

// watchStream is GET /v1/live/{id}/events: whoever has a key of the stream's
// account follows it, on any node, and as many as there are places.
func (s *Server) watchStream(w http.ResponseWriter, r *http.Request) {
	from, invalid := watchFrom(r.URL.Query())
	if invalid != nil {
		answer(w, http.StatusBadRequest, invalid)
		return
	}
	if !checkUpgrade(w, r) {
		return
	}
	account := caller(r.Context()).account
	rec, err := s.record(r.Context(), r.PathValue("id"))
	if s.refuseRecord(w, r, rec, err) {
		return
	}
	err = s.watchers.enter()
	if err == nil {
		defer s.watchers.leave()
		if s.audience.enter(account) {
			defer s.audience.leave(account)
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
	boundBuffers(conn.NetConn())
	s.newWatcher(rec.ID, conn, from, log).run(s.life, s.watchers.drain)
}

// watchFrom reads how many messages the watcher has already.
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

// watchable looks at a stream's record for somebody who follows it.
func (s *Server) watchable(ctx context.Context, id string) (status string, over bool, cause string, err error) {
	rec, err := s.record(ctx, id)
	if err != nil {
		return "", false, "", fmt.Errorf("look up the stream: %w", err)
	}
	return string(rec.Status), rec.Status.Over(), rec.Cause, nil
}
