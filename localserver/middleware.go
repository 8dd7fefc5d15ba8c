package localserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"hubbub/localserver/apikeys"
	"hubbub/protocol"
)

type requestKey struct{}

// requestInfo is what is known about a request. who is written by the goroutine of the
// request only.
type requestInfo struct {
	id  string
	who apikeys.Principal // zero until it is known
}

// infoOf is what is known about the request that ctx belongs to.
func infoOf(ctx context.Context) *requestInfo {
	if info, ok := ctx.Value(requestKey{}).(*requestInfo); ok {
		return info
	}
	return &requestInfo{}
}

// requestID is the id of the request that ctx belongs to.
func requestID(ctx context.Context) string { return infoOf(ctx).id }

// caller is who sent an authenticated request.
func caller(ctx context.Context) apikeys.Principal { return infoOf(ctx).who }

// observed gives every request an id, and counts it, logs it and ends its span when it
// is over.
//
// The id is in the header X-Request-Id, in error bodies and in the log. An id in the
// request is ignored, because that would let clients write to the log. Log and span have
// the route, not the address, because addresses contain tokens.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		info := &requestInfo{id: uuid.NewString()}
		w.Header().Set("X-Request-Id", info.id)
		ctx, span := s.startSpan(r)
		r = r.WithContext(context.WithValue(ctx, requestKey{}, info))
		if r.Header.Get("Expect") != "" {
			r.Body = &awaitedBody{ReadCloser: r.Body}
		}
		rec := &responseRecorder{ResponseWriter: w, request: r}
		defer func() {
			took := time.Since(began)
			s.metrics.observe(r, rec.status, took)
			s.log.Info("request",
				"request", info.id, "account", info.who.Account, "method", method(r), "route", route(r),
				"status", rec.status, "bytes", rec.bytes,
				"duration", took, "remote", r.RemoteAddr)
			endSpan(span, r, rec.status)
		}()
		next.ServeHTTP(rec, r)
		rec.discardBody()
	})
}

// completed completes a request although its client seems to be gone: it may only
// have closed its sending side. What a handler waits for has a deadline of its own.
//
// The connection of a body in chunks is closed afterwards: if the request also
// had a Content-Length, a proxy may see another end of it.
func completed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
}

// route is the pattern that a request matched. Their number is bounded, whatever clients
// request.
func route(r *http.Request) string {
	if r.Pattern == "" {
		return "none"
	}
	return r.Pattern
}

// withRecovery turns a panic of a handler into a 500 and a line in the log. It
// needs the responseRecorder of observed around it, which knows whether a
// response has begun; if so, it can only close the connection.
func (s *Server) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.log.Error("panic in a handler", "request", requestID(r.Context()),
				"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			if w.(*responseRecorder).status != 0 {
				panic(http.ErrAbortHandler)
			}
			refuse(w, r, http.StatusInternalServerError, "Internal error")
		}()
		next.ServeHTTP(w, r)
	})
}

// responseRecorder records the status and size of a response.
type responseRecorder struct {
	http.ResponseWriter
	request *http.Request
	status  int // 0 until the response has begun
	bytes   int64
}

func (w *responseRecorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseRecorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// discardTimeout is how long the rest of a body is read and discarded.
const discardTimeout = 5 * time.Second

// discardBody sends the response and reads what a handler has left of the body, for a
// while: a client that sends all of it before it reads would lose the response otherwise,
// because closing a connection with unread data resets it. net/http reads 256 KiB at most,
// and nothing if the client ends the connection; and it reads before it sends.
func (w *responseRecorder) discardBody() {
	body := w.request.Body
	switch awaited, ok := body.(*awaitedBody); {
	case w.request.ContentLength == 0, w.status == http.StatusSwitchingProtocols, w.status == http.StatusRequestTimeout:
		return
	case ok && !awaited.permitted: // the client does not send it
		return
	}
	control := http.NewResponseController(w) // nothing of it is supported in some tests only
	_ = control.SetReadDeadline(time.Now().Add(discardTimeout))
	_ = control.EnableFullDuplex()
	_ = control.Flush()
	if _, err := io.Copy(io.Discard, body); err != nil {
		panic(http.ErrAbortHandler) // what follows on the connection is not a request
	}
}

// awaitedBody is a body that a client sends when it is permitted to (Expect: 100-continue),
// which net/http does at the first read.
type awaitedBody struct {
	io.ReadCloser
	permitted bool
}

func (b *awaitedBody) Read(p []byte) (int, error) {
	b.permitted = true
	return b.ReadCloser.Read(p)
}

// Hijack is the method by which a WebSocket takes over the connection.
func (w *responseRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, buf, err
}

// Unwrap is for http.ResponseController.
func (w *responseRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// operation is the handler of an operation, which needs an API key, is rate-limited, and
// but for the test needs a subscription.
func (s *Server) operation(pattern string, next handler) http.Handler {
	limit := s.requestLimit(pattern)
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		setUncounted(w.Header(), limit)
		if err := s.authenticate(r); err != nil {
			return err
		}
		if err := s.count(w, r, pattern, limit); err != nil {
			return err
		}
		if !caller(r.Context()).Subscribed && pattern != testRoute {
			return refused(http.StatusPaymentRequired, "A subscription is required")
		}
		return next(w, r)
	})
}

// queried is an operation with parameters in its address. It refuses malformed and
// repeated ones: URL.Query leaves them out, and Get all but the first.
func queried(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return protocol.Invalid("query", "is malformed: %v", err)
		}
		for name, values := range query {
			if len(values) > 1 {
				return protocol.Invalid(name, "must be given once")
			}
		}
		return next(w, r)
	}
}

// authenticate refuses a request without a valid API key; caller then returns whose it is.
// The response does not say why a key is not valid.
func (s *Server) authenticate(r *http.Request) error {
	if key, ok := bearer(r.Header); ok {
		if who, ok := s.keys.Identify(key); ok {
			infoOf(r.Context()).who = who
			return nil
		}
	}
	return refused(http.StatusUnauthorized, "A valid API key is needed: Authorization: Bearer <API_KEY>")
}

// bearer returns the credential of a request; the scheme's name is case
// insensitive (RFC 9110). A request with two credentials has none.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, key, ok := strings.Cut(values[0], " ")
	key = strings.TrimLeft(key, " ")
	return key, ok && key != "" && strings.EqualFold(scheme, "Bearer")
}
