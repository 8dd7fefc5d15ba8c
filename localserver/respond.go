package localserver

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/recovered"
)

// maxBody bounds a JSON request body, in bytes. The body is stored, and the
// largest value of the store is 1 MiB.
const maxBody = 256 << 10

// bodyTooLarge is the message for a body that is too large, or that is when it is stored.
const bodyTooLarge = "The request body is too large"

// storeFull is the message for new streams and media that a full store refuses.
const storeFull = "The store is full; try again later"

// limitBody makes reading the body of a route fail after limit bytes.
func limitBody(next http.HandlerFunc, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &limitedBody{ReadCloser: http.MaxBytesReader(w, r.Body, limit), whole: r.Body}
		next(w, r)
	})
}

type limitedBody struct {
	io.ReadCloser
	whole io.Reader
}

// readBody reads a limited body; if ok is false it has responded.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	// The time to send the response begins when the body was read or did not arrive.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(requestTimeout + responseTimeout)) // not supported in some tests only
	body, err := io.ReadAll(r.Body)
	_ = control.SetWriteDeadline(time.Now().Add(responseTimeout))
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return body, true
	case errors.As(err, &tooLarge):
		if limited, ok := r.Body.(*limitedBody); ok {
			discard(w, limited.whole)
		}
		refuse(w, r, http.StatusRequestEntityTooLarge, bodyTooLarge)
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(w, r, http.StatusRequestTimeout, "The request body did not arrive in time")
	default:
		respond(w, http.StatusBadRequest, protocol.Invalid("", "could not be read"))
	}
	return nil, false
}

// discard reads the rest of a body that is refused, for a while. A client that
// sends all of it before it reads would lose the response otherwise.
func discard(w http.ResponseWriter, body io.Reader) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(discardTimeout)) // not supported in some tests only
	_, _ = io.Copy(io.Discard, body)
}

// respond writes one JSON body.
func respond(w http.ResponseWriter, status int, body any) {
	raw, err := protocol.MarshalLine(body)
	if err != nil { // every body is of a type of this module that marshals
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // fails only if the client is gone
}

// refuse responds with an ErrorResponse. The message is for clients; details
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
	respond(w, status, protocol.ErrorResponse{RequestID: requestID(r.Context()), Message: message})
}

// failed logs why a request could not be served and responds without the
// details.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, status int, message string, err error) {
	s.log.Error("request failed", "request", requestID(r.Context()), "status", status, recovered.Attr(err))
	refuse(w, r, status, message)
}
