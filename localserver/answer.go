package localserver

import (
	"context"
	"encoding/json"
	"net/http"

	"hubbub/protocol"
)

// answer writes one JSON body.
func answer(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil { // every body is of a type of ours that marshals
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // a client that is gone needs no answer
}

// refuse answers with an ApiError. The message is for clients: what went wrong
// inside belongs in the log, under the same request id.
func refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", "1")
		}
	}
	answer(w, status, protocol.ApiError{RequestID: requestID(r.Context()), Message: message})
}

// failed logs why a request could not be served and answers without it.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, status int, message string, err error) {
	level := s.log.Error
	if context.Cause(r.Context()) != nil { // the client has gone away
		level = s.log.Info
	}
	level("request failed", "request", requestID(r.Context()), "status", status, "error", err)
	refuse(w, r, status, message)
}
