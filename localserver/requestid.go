package localserver

import (
	"context"
	"net/http"

	"github.com/google/uuid"
)

type requestIDKey struct{}

// withRequestID gives every request an id of our own making: in the header
// X-Request-Id, in error bodies and in the log. An id that a client sends is
// not taken over, because it would let clients write into our log.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := uuid.NewString()
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

// requestID is the id of the request that ctx belongs to.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
