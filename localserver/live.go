package localserver

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"hubbub/localserver/limits"
	"hubbub/localserver/store"
	"hubbub/protocol"
)

const (
	// streamPath is where streams are opened; the id follows.
	streamPath = "/v1/stream/"
	// causeNeverOpened is the cause in the record of a stream whose token has
	// expired.
	causeNeverOpened = "never opened"
	cannotCreate     = "The stream could not be created; try again"
)

// test is GET /v1/test. It needs a valid key and does nothing.
func (s *Server) test(w http.ResponseWriter, _ *http.Request) error {
	return respond(w, http.StatusOK, protocol.TestResponse{
		Status: protocol.StatusOK, Message: "The API key is accepted"})
}

// createStream is POST /v1/live: a stream and the token that opens it.
func (s *Server) createStream(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, maxLiveBody)
	if err != nil {
		return err
	}
	input, invalid := protocol.ValidateInput(body)
	if invalid != nil {
		return invalid
	}
	enrolment, input, invalid := protocol.ParseEnrolment(input)
	if invalid != nil {
		return invalid
	}
	if err := checkVoiceprints(enrolment); err != nil {
		return err
	}
	if len(input) > maxBody || len(body) > maxBody && len(enrolment.Voiceprints) == 0 {
		return refused(http.StatusRequestEntityTooLarge, bodyTooLarge)
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	now := s.now().UTC()
	account := caller(r.Context()).Account
	if err = s.admitStream(account); err == nil {
		err = s.store.StreamAvailable(ctx, account, now, s.options.MaxAccountStreams)
	}
	if err != nil {
		return notAdmitted(w, err, cannotCreate)
	}
	rec := store.Stream{
		ID: uuid.NewString(), Account: account, Key: caller(r.Context()).Key,
		Input: input, Expires: now.Add(store.TokenTTL),
	}
	token := rand.Text() + rand.Text() // 256 random bits
	if len(enrolment.Voiceprints) > 0 {
		rec.Enrolment = sealEnrolment(token, enrolment)
	}
	rec.Resume = s.streamToResume(ctx, rec.Account, input)
	switch err := s.records.Create(ctx, rec, token); {
	case errors.Is(err, store.ErrTooLarge):
		return refused(http.StatusRequestEntityTooLarge, bodyTooLarge)
	case err != nil:
		return unavailable(cannotCreate, err)
	}
	s.log.Info("stream created", "request", requestID(r.Context()), "stream", rec.ID, "account", rec.Account, "key", rec.Key, "resumes", rec.Resume)
	return respond(w, http.StatusOK, protocol.LiveStream{ID: rec.ID, URL: s.streamURL(r, rec.ID, token), Resumed: rec.Resume != "", Words: s.recogniser(rec) != nil})
}

// streamStatus is GET /v1/live/{id}. A stream of another account gets the
// same response as one that does not exist.
func (s *Server) streamStatus(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.findStream(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	status := protocol.LiveStatus{ID: rec.ID, Input: rec.Input, Status: string(rec.Status), ResumedBy: rec.ResumedBy, Resumable: s.resumable(ctx, rec)}
	if rec.Started != nil {
		status.StartedAt = new(protocol.FormatTime(*rec.Started))
	}
	if rec.Completed != nil {
		status.CompletedAt = new(protocol.FormatTime(*rec.Completed))
	}
	return respond(w, http.StatusOK, status)
}

// pathID is the id in the path of a request. A UUID is read without regard to case
// (RFC 9562).
func pathID(r *http.Request) string { return strings.ToLower(r.PathValue("id")) }

// lookUp returns the record of a stream, or ErrNotFound. Every id that comes
// from a client passes here: nothing but a UUID reaches the store.
func (s *Server) lookUp(ctx context.Context, id string) (store.Stream, error) {
	if !store.IsID(id) {
		return store.Stream{}, store.ErrNotFound
	}
	return s.records.Get(ctx, id)
}

// record returns the record of a stream as it has to read now. One that can no longer be
// opened is over, and one of a dead node too, also before the reaper has ended it.
func (s *Server) record(ctx context.Context, id string) (store.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	rec, err := s.lookUp(ctx, id)
	switch {
	case err != nil:
		return rec, err
	case rec.Status == store.Created && !s.now().Before(rec.Expires):
		_ = s.records.Finish(ctx, rec.ID, store.Failed, rec.Expires, causeNeverOpened) // the record says whether it did
	case rec.Status == store.Running && s.monitor != nil && s.monitor.Dead(rec.Node):
		if err := s.expire(ctx, rec, causeNodeDied); err != nil {
			return rec, err
		}
	default:
		return rec, nil
	}
	return s.records.Get(ctx, rec.ID)
}

// findStream returns the record of a stream of the caller.
func (s *Server) findStream(r *http.Request) (store.Stream, error) {
	rec, err := s.record(r.Context(), pathID(r))
	if err == nil && rec.Account != caller(r.Context()).Account {
		err = store.ErrNotFound
	}
	return rec, storeError(err, "There is no stream with this id", "The stream could not be looked up; try again")
}

// streamURL is where a client opens the stream.
func (s *Server) streamURL(r *http.Request, id, token string) string {
	u := s.address(r, streamPath+id)
	u.Scheme = "ws" + strings.TrimPrefix(u.Scheme, "http")
	u.RawQuery = "token=" + token
	return u.String()
}

// alive is GET /healthz: the process responds, and nothing is broken that only
// a restart repairs. A store that may come back by itself is for /readyz.
func (s *Server) alive(w http.ResponseWriter, _ *http.Request) error {
	if s.store.Err() != nil {
		return refused(http.StatusServiceUnavailable, "The connection to the store is closed; the server has to be started again")
	}
	return respond(w, http.StatusOK, protocol.TestResponse{Status: protocol.StatusOK, Message: "Alive"})
}

// ready is GET /readyz: the store works and new streams are accepted.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	err := s.store.Ping(ctx)
	if err == nil && s.monitor != nil && !s.monitor.Fresh() {
		err = errors.New("the lease of this node could not be renewed")
	}
	switch {
	case s.streams.Available("") == limits.ErrStopping:
		return refused(http.StatusServiceUnavailable, "The server is stopping")
	case err != nil:
		return unavailable("The store does not respond", err)
	}
	return respond(w, http.StatusOK, protocol.TestResponse{Status: protocol.StatusOK, Message: "Ready"})
}
