package localserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"hubbub/localserver/jobs"
	"hubbub/localserver/store"
	"hubbub/localserver/stream"
	"hubbub/protocol"
	"hubbub/protocol/recovered"
	"hubbub/protocol/words"
)

// handshakeTimeout bounds the response to a handshake.
const handshakeTimeout = 10 * time.Second

// resumeWindow is how long a client is expected to try to resume a stream that it
// has lost.
const resumeWindow = 2 * time.Minute

// upgrader accepts pages of any origin: a stream is opened by its token, not
// by credentials that a browser adds to requests by itself.
var upgrader = websocket.Upgrader{
	HandshakeTimeout: handshakeTimeout,
	CheckOrigin:      func(*http.Request) bool { return true },
}

// openStream is the handshake of a stream. Everything that can be refused is
// refused before the token is used up, so that an invalid request or a full
// server wastes no token. The token is used up before the connection is
// upgraded, so that of concurrent clients one succeeds. A request that
// fails with 503 can be repeated with the same token.
func (s *Server) openStream(w http.ResponseWriter, r *http.Request) error {
	if err := checkUpgrade(w, r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), openTimeout)
	defer cancel()
	id := pathID(r)
	rec, diarizer, labels, err := s.begin(ctx, id, r.URL.Query().Get("token"))
	infoOf(r.Context()).who.Account = rec.Account
	if err != nil {
		return notOpened(w, err)
	}
	defer s.streams.Release(rec.Account)
	defer s.releaseStream(rec.Account, id)

	head := http.Header{"X-Request-Id": {requestID(r.Context())}}
	conn, err := upgrader.Upgrade(w, r, head) // responds by itself when it fails
	if err != nil {
		s.abandon(id, "the handshake failed")
		s.log.Info("handshake failed", "request", requestID(r.Context()), "stream", id, "error", err)
		return nil
	}
	defer func() { _ = conn.Close() }()
	s.runStream(rec, requestID(r.Context()), conn, diarizer, labels)
	return nil
}

// begin uses up the token of a stream and makes it a running one of this node, which
// counts until it is released. It returns the record of the stream, its diarizer, and the
// labels of the earlier stream that it resumes. An attempt of unknown outcome is withdrawn.
func (s *Server) begin(ctx context.Context, id, token string) (rec store.Stream, d stream.Diarizer, labels stream.Labels, err error) {
	// What the record says then is what an earlier request of this node has left.
	if err = s.tokenLocks.lock(ctx, id); err != nil {
		return rec, nil, labels, err
	}
	unlock := func() { s.tokenLocks.unlock(id) }
	defer func() { unlock() }()
	if rec, err = s.openable(ctx, id, token); err != nil {
		return store.Stream{}, nil, labels, err
	}
	if err = s.admitStream(rec.Account); err == nil {
		err = s.streams.Acquire(rec.Account)
	}
	if err != nil {
		return rec, nil, labels, err
	}
	defer func() {
		if err != nil {
			s.streams.Release(rec.Account)
		}
	}()
	now := s.now().UTC()
	if err = s.store.AcquireStream(ctx, rec.Account, id, now, s.options.MaxAccountStreams); err != nil {
		return rec, nil, labels, err
	}
	d, labels, snapshot, err := s.prepare(ctx, rec, token)
	if err != nil {
		return rec, nil, labels, err
	}
	claim := store.Claim{Node: s.node, Attempt: uuid.NewString()}
	if err = s.records.Begin(ctx, id, token, claim, now); store.Unknown(err) {
		unlock = func() {} // when it is withdrawn
		s.background.Go(func() { s.withdraw(id, claim.Attempt) })
	}
	if err != nil || rec.Resume == "" {
		return rec, d, labels, err
	}
	// Its client may lose this stream, too, as soon as it knows that it is open.
	if err := s.store.PutSnapshot(ctx, id, snapshot, 0); err != nil {
		s.log.Warn("the snapshot of a stream could not be stored", "stream", id, "error", err)
	}
	if err := s.records.Resumed(ctx, rec.Resume, id); err != nil { // its watchers do not follow
		s.log.Warn("the record of a resumed stream could not be changed", "stream", rec.Resume, "error", err)
	}
	return rec, d, labels, nil
}

// prepare returns the diarizer of a stream that is opened with its token. If it resumes an
// earlier stream, the diarizer continues with the snapshot of that one, and with its labels.
// Its errors say what to respond.
func (s *Server) prepare(ctx context.Context, rec store.Stream, token string) (d stream.Diarizer, labels stream.Labels, snapshot []byte, err error) {
	people, err := openEnrolment(token, rec.Enrolment)
	if err == nil {
		d, err = s.newDiarizer(people)
	}
	if err != nil {
		return nil, labels, nil, internal(err)
	}
	if rec.Resume == "" {
		return d, labels, nil, nil
	}
	if open, ok := s.running.Load(rec.Resume); ok { // its client has lost it
		open.(*stream.Stream).Supersede(ctx)
	}
	if snapshot, _, err = s.store.Snapshot(ctx, rec.Resume); err == nil {
		labels, err = stream.Restore(d, snapshot)
	}
	if err != nil { // although the client was told that it can be resumed
		return nil, labels, nil, unavailable("The earlier stream could not be resumed; try again, or create a new stream", err)
	}
	if len(people.Voiceprints) == 0 { // the events of a stream without voiceprints have no match
		for i := range labels {
			labels[i].Matched = false
		}
	}
	return d, labels, snapshot, nil
}

// notOpened is what a handshake fails with.
func notOpened(w http.ResponseWriter, err error) error {
	if _, says := errors.AsType[*failure](err); says {
		return err
	}
	if errors.Is(err, store.ErrToken) || errors.Is(err, store.ErrNotFound) {
		return refused(http.StatusUnauthorized, "The stream token is not valid")
	}
	return notAdmitted(w, err, "The stream could not be opened; try again")
}

// openable returns the record of a stream that may be opened with a token, or
// store.ErrToken.
func (s *Server) openable(ctx context.Context, id, token string) (store.Stream, error) {
	rec, err := s.lookUp(ctx, id)
	if err == nil && (!rec.OpenedBy(token) || s.keys.Revoked(rec.Key) || rec.Status != store.Created) {
		err = store.ErrToken
	}
	return rec, err
}

// runStream runs a stream from its handshake to its end. labels are those of the
// stream that it resumes.
func (s *Server) runStream(rec store.Stream, request string, conn *websocket.Conn, diarizer stream.Diarizer, labels stream.Labels) {
	config := stream.Config{
		ID: rec.ID, Log: s.log.With("stream", rec.ID, "request", request), Now: s.now, Unpaced: s.options.Unpaced,
		Store: s.store, Outbox: s.outbox, Counters: &s.counters,
		Recogniser: s.recogniser(rec), Labels: labels, Revoked: func() bool { return s.keys.Revoked(rec.Key) },
	}
	if s.options.KeepAudio {
		config.Recording = &stream.AudioTarget{Account: rec.Account,
			Name: resultPrefix + rec.ID + "/" + audioFile, MaxBytes: s.options.MaxMedia}
	}
	socket := stream.Socket(conn)
	if faulty := s.faults.Stream(conn); faulty != nil {
		socket, config.CloseDelay = faulty, faulty.Linger()
	}
	open := stream.New(config, socket, diarizer)
	s.running.Store(rec.ID, open)
	defer s.running.Delete(rec.ID)
	open.Run(s.ctx, s.streams.Drain())
}

// recogniser is that of a stream that asked for words, nil for others.
func (s *Server) recogniser(rec store.Stream) words.Recogniser {
	if s.options.Words == nil || !protocol.WantsWords(rec.Input) {
		return nil
	}
	return s.options.Words
}

// newDiarizer returns the diarizer of one stream that recognises some people. A panic is
// an error.
func (s *Server) newDiarizer(people protocol.Enrolment) (d stream.Diarizer, err error) {
	err = recovered.Guard(func() (err error) {
		if d, err = s.options.NewDiarizer(); err != nil {
			return err
		}
		list, matching, err := jobs.People(people)
		if err == nil {
			d.Enrol(list, matching)
		}
		return err
	})
	return d, err
}

// abandon ends a stream that could not be started.
func (s *Server) abandon(id, cause string) {
	ctx, cancel := context.WithTimeout(s.ctx, storeTimeout)
	defer cancel()
	at := s.now().UTC()
	err := s.records.Finish(ctx, id, store.Failed, at, cause)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		s.outbox.Add(&stream.PendingFinish{Stream: id, Status: store.Failed, Cause: cause, At: at})
	}
}

// checkUpgrade returns what is wrong with a handshake: only for a valid one may a token be
// used.
func checkUpgrade(w http.ResponseWriter, r *http.Request) error {
	switch {
	case !websocket.IsWebSocketUpgrade(r):
		return upgradeRequired(w, "This address is opened as a WebSocket")
	case r.ProtoMinor == 0 || r.Method != http.MethodGet:
		return refused(http.StatusBadRequest, "A WebSocket is opened with GET over HTTP/1.1")
	case r.Header.Get("Sec-Websocket-Version") != "13":
		w.Header().Set("Sec-Websocket-Version", "13")
		return upgradeRequired(w, "The WebSocket version must be 13")
	case !validKey(r.Header.Get("Sec-Websocket-Key")):
		return refused(http.StatusBadRequest, "Sec-WebSocket-Key must be 16 bytes in base64")
	}
	return nil
}

// upgradeRequired is a 426, which has to name what to upgrade to.
func upgradeRequired(w http.ResponseWriter, message string) error {
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Connection", "Upgrade")
	return refused(http.StatusUpgradeRequired, message)
}

func validKey(key string) bool {
	raw, err := base64.StdEncoding.DecodeString(key)
	return err == nil && len(raw) == 16
}

// streamToResume returns the id of the stream that the body of POST /v1/live asks to
// resume, if it is the caller's and has a usable snapshot; else "".
func (s *Server) streamToResume(ctx context.Context, account string, input json.RawMessage) string {
	id, _ := protocol.InputField(input, "resume").(string)
	id = strings.ToLower(id)
	rec, err := s.lookUp(ctx, id)
	if err != nil || rec.Account != account {
		return ""
	}
	if _, ok := s.running.Load(id); ok {
		return id // it stores its snapshot when it is superseded
	}
	snapshot, _, err := s.store.Snapshot(ctx, id)
	var d stream.Diarizer
	if err == nil {
		d, err = s.newDiarizer(protocol.Enrolment{})
	}
	if err == nil {
		_, err = stream.Restore(d, snapshot)
	}
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			s.log.Warn("a stream cannot be resumed", "stream", id, "error", err)
		}
		return ""
	}
	return id
}

// resumable reports whether the client of a stream may still resume it: the
// stream was lost a moment ago, and its speakers are stored.
func (s *Server) resumable(ctx context.Context, rec store.Stream) bool {
	if rec.Status != store.Failed || rec.ResumedBy != "" || rec.Completed == nil || s.now().Sub(*rec.Completed) > resumeWindow {
		return false
	}
	_, _, err := s.store.Snapshot(ctx, rec.ID)
	return err == nil
}
