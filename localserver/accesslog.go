package localserver

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// withAccessLog writes one line for each request when it is over. It names the
// route, not the address: addresses carry tokens, and routes can be counted.
func withAccessLog(log *slog.Logger) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			rec := &recordingWriter{ResponseWriter: w}
			defer func() {
				route := r.Pattern
				if route == "" {
					route = "none"
				}
				log.Info("request",
					"request", requestID(r.Context()), "method", r.Method, "route", route,
					"status", rec.status, "bytes", rec.bytes,
					"duration", time.Since(began), "remote", r.RemoteAddr)
			}()
			next.ServeHTTP(rec, r)
		})
	}
}

// recordingWriter remembers what was answered.
type recordingWriter struct {
	http.ResponseWriter
	status int // 0 until something was answered
	bytes  int64
}

func (w *recordingWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recordingWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Hijack hands the connection over to a WebSocket, which looks for exactly
// this method.
func (w *recordingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, buf, err
}

// Unwrap is for http.ResponseController.
func (w *recordingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
