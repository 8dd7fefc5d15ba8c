package localserver

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// withRecovery turns a panic of a handler into a 500 and a line in the log.
// It stands inside withAccessLog, whose writer knows whether an answer has
// begun; then all that is left is to cut the connection.
func withRecovery(log *slog.Logger) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				v := recover()
				if v == nil {
					return
				}
				if v == http.ErrAbortHandler {
					panic(v)
				}
				log.Error("panic in a handler", "request", requestID(r.Context()),
					"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
				if rec, ok := w.(*recordingWriter); ok && rec.status != 0 {
					panic(http.ErrAbortHandler)
				}
				refuse(w, r, http.StatusInternalServerError, "Internal error")
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// guarded runs f and turns a panic into an error that holds the stack, so that
// it ends no more than it has to.
func guarded(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	f()
	return nil
}
