package localserver

import (
	"errors"
	"io"
	"net/http"
	"os"

	"hubbub/protocol"
)

// maxBody bounds a JSON request body, in bytes. It is kept in the store, whose
// largest value is 1 MiB.
const maxBody = 256 << 10

// limitBody makes the bodies of a route end in an error after maxBody bytes.
func limitBody(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next(w, r)
	})
}

// readBody reads a limited body; when it cannot, it has answered.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return body, true
	case errors.As(err, &tooLarge):
		refuse(w, r, http.StatusRequestEntityTooLarge, "The request body is too large")
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(w, r, http.StatusRequestTimeout, "The request body did not arrive in time")
	default:
		answer(w, http.StatusBadRequest, protocol.Invalid("", "could not be read"))
	}
	return nil, false
}
