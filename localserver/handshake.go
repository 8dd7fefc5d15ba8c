package localserver

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/localserver/store"
)

const (
	// sendBuffer and receiveBuffer bound what the system holds for a stream,
	// in bytes: some hundreds of events for a client that does not read, and
	// four seconds of audio for an engine that does not keep up.
	sendBuffer    = 64 << 10
	receiveBuffer = 256 << 10
	// handshakeTimeout bounds the answer to a handshake.
	handshakeTimeout = 10 * time.Second
)

// upgrader lets pages of any origin in: a stream is opened by its token, not
// by anything that a browser sends along by itself.
var upgrader = websocket.Upgrader{
	HandshakeTimeout: handshakeTimeout,
	CheckOrigin:      func(*http.Request) bool { return true },
}

// openStream is the handshake of a stream. Everything that can be refused is
// refused before the token is used up, so that a wrong request or a full
// server burns none; it is used up before the connection is upgraded, so that
// of many clients that race one gets through. One that is answered 503 may try
// again: its token is as good as before.
func (s *Server) openStream(w http.ResponseWriter, r *http.Request) {
	if !checkUpgrade(w, r) {
		return
	}
	if err := s.streams.enter(); err != nil {
		s.refuseStream(w, r, err)
		return
	}
	defer s.streams.leave()

	id := r.PathValue("id")
	ctx, cancel := context.WithTimeout(r.Context(), openTimeout)
	defer cancel()
	now := s.now().UTC()
	token := r.URL.Query().Get("token")
	rec, err := s.sessions.Get(ctx, id)
	if err == nil && !rec.OpenedBy(token) {
		err = store.ErrToken
	}
	if err == nil {
		if !s.owned.enter(rec.Account) {
			s.refuseStream(w, r, errFull)
			return
		}
		defer s.owned.leave(rec.Account)
		if err = s.takePlace(ctx, rec.Account, id, now); err == nil {
			err = s.begin(ctx, id, token, now)
		}
	}
	switch {
	case errors.Is(err, errFull):
		s.refuseStream(w, r, err)
		return
	case errors.Is(err, store.ErrToken), errors.Is(err, store.ErrNotFound):
		refuse(w, r, http.StatusUnauthorized, "The stream token is not valid")
		return
	case err != nil:
		s.failed(w, r, http.StatusServiceUnavailable, "The stream could not be opened; try again", err)
		return
	}

	defer s.leavePlace(rec.Account, id)
	var diarizer Diarizer
	var labels ledger
	if rec.Resume != "" {
		diarizer, labels, err = s.restored(ctx, rec.Resume)
		if err != nil { // it was promised
			s.abandon(id, "the voices of the earlier stream could not be had")
			s.failed(w, r, http.StatusServiceUnavailable, "The earlier stream could not be taken up; create a new one", err)
			return
		}
	} else {
		diarizer, err = s.newDiarizer()
	}
	if err != nil {
		s.abandon(id, "the engine could not be started")
		s.failed(w, r, http.StatusInternalServerError, "Internal error", err)
		return
	}
	head := http.Header{"X-Request-Id": {requestID(r.Context())}}
	conn, err := upgrader.Upgrade(w, r, head) // answers by itself when it fails
	if err != nil {
		s.abandon(id, "the handshake failed")
		s.log.Info("handshake failed", "request", requestID(r.Context()), "stream", id, "error", err)
		return
	}
	defer func() { _ = conn.Close() }()
	boundBuffers(conn.NetConn())
	on, more := s.rehearsed(conn)
	stream := s.newSession(id, on, diarizer, requestID(r.Context()))
	stream.writer.linger += more
	if s.options.KeepAudio {
		stream.audio = s.keepAudio(rec.Account, id, stream.log)
	}
	if rec.Resume != "" {
		stream.ledger = labels
		stream.keepVoices() // should this one be lost soon, it can be taken up as well
	}
	s.running.Store(id, stream)
	defer s.running.Delete(id)
	stream.run(s.life, s.streams.drain)
}

// rehearsed puts faults between a stream and its socket, where there are to be
// any, and tells how much longer the client has to answer a close.
func (s *Server) rehearsed(conn *websocket.Conn) (socket, time.Duration) {
	if faulty := s.faults.Stream(conn); faulty != nil {
		return faulty, faulty.Linger()
	}
	return conn, 0
}

// newDiarizer makes the engine of one stream; a panic on the way is an error.
func (s *Server) newDiarizer() (d Diarizer, err error) {
	if broken := guarded(func() { d, err = s.options.NewDiarizer() }); broken != nil {
		return nil, broken
	}
	return d, err
}

// abandon ends a session that began and got no further.
func (s *Server) abandon(id, cause string) {
	ctx, cancel := context.WithTimeout(s.life, storeTimeout)
	defer cancel()
	at := s.now().UTC()
	err := s.sessions.Finish(ctx, id, store.Failed, at, cause)
	switch {
	case err == nil, errors.Is(err, store.ErrConflict):
	case s.outbox != nil:
		s.outbox.put(&remains{Stream: id, Status: store.Failed, Cause: cause, At: at})
	default:
		s.log.Error("the end of a stream could not be kept", "stream", id, "error", err)
	}
}

// checkUpgrade tells whether a request is a complete handshake, for only then
// may its token be used; when it is not, it has answered.
func checkUpgrade(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !websocket.IsWebSocketUpgrade(r):
		if r.ProtoMajor == 1 { // HTTP/2 knows no such headers
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
		}
		refuse(w, r, http.StatusUpgradeRequired, "This address is opened as a WebSocket")
	case r.ProtoMajor != 1 || r.Method != http.MethodGet:
		refuse(w, r, http.StatusBadRequest, "A WebSocket is opened with GET over HTTP/1.1")
	case r.Header.Get("Sec-Websocket-Version") != "13":
		w.Header().Set("Sec-Websocket-Version", "13")
		refuse(w, r, http.StatusUpgradeRequired, "The WebSocket version must be 13")
	case !challenge(r.Header.Get("Sec-Websocket-Key")):
		refuse(w, r, http.StatusBadRequest, "Sec-WebSocket-Key must be 16 bytes in base64")
	default:
		return true
	}
	return false
}

func challenge(key string) bool {
	raw, err := base64.StdEncoding.DecodeString(key)
	return err == nil && len(raw) == 16
}

// boundBuffers keeps the system from holding much for either side of a stream.
func boundBuffers(conn net.Conn) {
	if t, ok := systemConn(conn).(*net.TCPConn); ok {
		_ = errors.Join(t.SetWriteBuffer(sendBuffer), t.SetReadBuffer(receiveBuffer)) // wishes, not needs
	}
}
