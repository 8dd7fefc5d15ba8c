package localserver

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// streamPath is where streams are opened; the id follows.
	streamPath = "/v1/stream/"
	// tokenBytes is the length of a stream token before it is written down.
	tokenBytes = 32
	// storeTimeout bounds one call of the store.
	storeTimeout = 5 * time.Second
)

// test is GET /v1/test: whoever gets here has a valid key.
func (s *Server) test(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, protocol.TestResponse{
		Status: protocol.StatusOK, Message: "The API key is accepted"})
}

// createStream is POST /v1/live: a session and the token that opens it.
func (s *Server) createStream(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	input, invalid := protocol.ValidateInput(body)
	if invalid != nil {
		answer(w, http.StatusBadRequest, invalid)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	now := s.now().UTC()
	err := s.streams.room()
	if err == nil {
		err = s.placesLeft(ctx, caller(r.Context()).account, now)
	}
	switch {
	case errors.Is(err, errFull), errors.Is(err, errStopping):
		s.refuseStream(w, r, err)
		return
	case err != nil:
		s.failed(w, r, http.StatusServiceUnavailable, "The stream could not be created; try again", err)
		return
	}
	rec := store.Session{
		ID: uuid.NewString(), Account: caller(r.Context()).account, Node: s.node,
		Input: input, Created: now, Expires: now.Add(store.TokenTTL),
	}
	rec.Resume = s.resumable(ctx, rec.Account, input)
	token := newToken()
	if err := s.sessions.Create(ctx, rec, token); err != nil {
		s.failed(w, r, http.StatusServiceUnavailable, "The stream could not be created; try again", err)
		return
	}
	s.log.Info("stream created", "request", requestID(r.Context()), "stream", rec.ID, "account", rec.Account, "resumes", rec.Resume)
	answer(w, http.StatusOK, protocol.LiveStream{ID: rec.ID, URL: s.streamURL(r, rec.ID, token), Resumed: rec.Resume != ""})
}

// streamStatus is GET /v1/live/{id}. Another account's stream is as unknown as
// one that never was.
func (s *Server) streamStatus(w http.ResponseWriter, r *http.Request) {
	rec, err := s.record(r.Context(), r.PathValue("id"))
	if s.refuseRecord(w, r, rec, err) {
		return
	}
	answer(w, http.StatusOK, protocol.LiveStatus{
		ID: rec.ID, StartedAt: rec.Started, CompletedAt: rec.Completed,
		Input: rec.Input, Status: string(rec.Status)})
}

// record looks a stream up, as it has to read now.
func (s *Server) record(ctx context.Context, id string) (store.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rec, err := s.sessions.Get(ctx, id)
	if err == nil && rec.Status == store.Created && !s.now().Before(rec.Expires) {
		// Nobody can open it any more: say so rather than "created" for ever.
		_ = s.sessions.Finish(ctx, rec.ID, store.Failed, rec.Expires, "never opened")
		rec, err = s.sessions.Get(ctx, rec.ID)
	}
	if err == nil {
		rec, err = s.lookAfter(ctx, rec)
	}
	return rec, err
}

// refuseRecord answers when a record could not be had, or is not the caller's,
// and reports whether it did.
func (s *Server) refuseRecord(w http.ResponseWriter, r *http.Request, rec store.Session, err error) bool {
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && rec.Account != caller(r.Context()).account:
		refuse(w, r, http.StatusNotFound, "There is no stream with this id")
	case err != nil:
		s.failed(w, r, http.StatusServiceUnavailable, "The stream could not be looked up; try again", err)
	default:
		return false
	}
	return true
}

// streamURL is where a client opens the stream: under the public address, or
// under the name by which the client has just reached the server.
func (s *Server) streamURL(r *http.Request, id, token string) string {
	u := url.URL{Scheme: "wss", Host: r.Host, Path: streamPath + id, RawQuery: "token=" + token}
	if s.tls == nil {
		u.Scheme = "ws"
	}
	if u.Host == "" { // HTTP/1.0 has no Host
		u.Host = s.Addr().String()
	}
	if s.public != nil {
		u.Scheme, u.Host = "wss", s.public.Host
		if s.public.Scheme == "http" {
			u.Scheme = "ws"
		}
		u.Path = s.public.JoinPath(streamPath, id).Path
	}
	return u.String()
}

// newToken draws a stream token.
func newToken() string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// alive is GET /healthz: the process answers.
func (s *Server) alive(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, protocol.TestResponse{Status: protocol.StatusOK, Message: "Alive"})
}

// ready is GET /readyz: the store works and new streams are taken.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	switch {
	case s.streams.stopping():
		refuse(w, r, http.StatusServiceUnavailable, "The server is stopping")
	case s.store.Ping(ctx) != nil, s.watchman != nil && !s.watchman.fresh():
		refuse(w, r, http.StatusServiceUnavailable, "The store does not answer")
	default:
		answer(w, http.StatusOK, protocol.TestResponse{Status: protocol.StatusOK, Message: "Ready"})
	}
}
