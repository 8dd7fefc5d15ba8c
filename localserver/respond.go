package localserver

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/recovered"
)

// maxBody bounds a JSON request body, in bytes. The body is stored, and the
// largest value of the store is 1 MiB.
const maxBody = 256 << 10

// bodyTooLarge is the message for a body that is too large, or that is when it is stored.
const bodyTooLarge = "The request body is too large"

// storeFull is the message for what a full store refuses.
const storeFull = "The store is full; try again later"

// failure is an error of a handler that says what to respond.
type failure struct {
	status  int
	message string // for clients
	cause   error  // for the log; nil if the request is refused for what it is
}

func (f *failure) Error() string { return f.message }

// refused is a request that fails for what it is.
func refused(status int, message string) error { return &failure{status: status, message: message} }

// unavailable is a request that fails because of the store; message is for clients, unless
// the store is full.
func unavailable(message string, cause error) error {
	if store.Full(cause) {
		message = storeFull
	}
	return &failure{http.StatusServiceUnavailable, message, cause}
}

// internal is a request that fails because of a fault of the server.
func internal(cause error) *failure {
	return &failure{http.StatusInternalServerError, "Internal error", cause}
}

// storeError is what a request fails with because a call of the store has: with 404 if what was
// looked up is absent, else as unavailable. It is nil after a call that succeeded.
func storeError(err error, absent, message string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotFound):
		return refused(http.StatusNotFound, absent)
	}
	return unavailable(message, err)
}

// handler responds to a request, or returns an error for handle to respond with.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle responds with the error that a handler returns. One that does not say what to
// respond is a fault of the server.
func (s *Server) handle(next handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := next(w, r)
		if err == nil {
			return
		}
		if invalid, ok := errors.AsType[*protocol.ValidationErrorResponse](err); ok {
			_ = respond(w, http.StatusBadRequest, invalid)
			return
		}
		failed, ok := errors.AsType[*failure](err)
		if !ok {
			failed = internal(err)
		}
		if failed.cause != nil {
			s.log.Error("request failed", "request", requestID(r.Context()), "status", failed.status, recovered.Attr(failed.cause))
		}
		refuse(w, r, failed.status, failed.message)
	})
}

// readBody reads a body of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	// The time to send the response begins when the body was read or did not arrive.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout)) // not supported in some tests only
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	encoding := r.Header.Get("Content-Encoding")
	switch {
	case err == nil && encoding != "" && len(body) > 0 && !json.Valid(body):
		return nil, protocol.Invalid("", "has the Content-Encoding %s; send it without one", protocol.Clean(encoding, 100))
	case err == nil:
		return body, nil
	case tooLarge:
		return nil, refused(http.StatusRequestEntityTooLarge, bodyTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refused(http.StatusRequestTimeout, "The request body did not arrive in time")
	}
	return nil, protocol.Invalid("", "could not be read")
}

// respond writes one JSON body. It returns nil, for the handlers that end with it.
func respond(w http.ResponseWriter, status int, body any) error {
	raw, err := protocol.MarshalLine(body)
	if err != nil { // every body is of a type of this module that marshals
		panic(err)
	}
	raw = append(raw, '\n')
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(raw)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // fails only if the client is gone
	return nil
}

// refuse responds with an ApiError. The message is for clients; details
// belong in the log, under the same request id.
func refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", "1")
		}
	}
	_ = respond(w, status, protocol.APIError{RequestID: requestID(r.Context()), Message: message})
}
