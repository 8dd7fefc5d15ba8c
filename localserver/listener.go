package localserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"hubbub/localserver/certificate"
	"hubbub/localserver/httpconn"
	"hubbub/protocol"
)

// The limits of an HTTP connection. A stream has its own after its handshake.
const (
	headerTimeout   = 10 * time.Second
	requestTimeout  = 30 * time.Second
	responseTimeout = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeader       = 16 << 10
	// maxHeaderRead is how much of larger headers is read, so that they are
	// refused like other requests.
	maxHeaderRead = 256 << 10
)

func (s *Server) newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      h,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  requestTimeout,
		WriteTimeout:                 responseTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderRead,
		DisableGeneralOptionsHandler: true, // OPTIONS * fails in JSON too
		ConnContext:                  httpconn.Context,
		ConnState:                    httpconn.State,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelWarn), // such as too many open files
	}
}

// listen opens the port of the service, and that of the metrics if they have one.
func (s *Server) listen(ctx context.Context) (err error) {
	if s.listener, err = httpconn.Listen(ctx, s.options.Addr); err != nil || s.options.MetricsAddr == "" {
		return err
	}
	s.metricsListener, err = httpconn.Listen(ctx, s.options.MetricsAddr)
	return err
}

// serveListeners starts the accepting of connections at the ports. Everything else has
// started: one that fails stops the server.
func (s *Server) serveListeners() {
	s.http = s.newHTTPServer(s.routes())
	if s.metricsListener != nil {
		metrics := s.newHTTPServer(s.newHandler(map[string]http.Handler{metricsRoute: s.metrics.handler()}))
		s.others = append(s.others, metrics)
		go s.serve(metrics, s.metricsListener, nil)
		s.log.Info("serving metrics", "address", s.MetricsAddr().String())
	}
	go s.serve(s.http, s.listener, s.tls.Config())
}

// serve accepts connections until the server stops, with TLS if there is a
// configuration.
func (s *Server) serve(h *http.Server, l net.Listener, config *tls.Config) {
	err := h.Serve(&httpconn.Listener{Listener: l, TLS: config, Reject: s.rejectUnread, Log: s.log})
	if !errors.Is(err, http.ErrServerClosed) {
		_ = s.stop(s.ctx, fmt.Errorf("the server can take no more connections: %w", err))
	}
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// MetricsAddr is the address of the metrics, nil if it is that of the service.
func (s *Server) MetricsAddr() net.Addr {
	if s.metricsListener == nil {
		return nil
	}
	return s.metricsListener.Addr()
}

// URL is the base address for clients on this machine, or the public one.
func (s *Server) URL() string {
	if s.public != nil {
		return s.public.String()
	}
	host, port, _ := net.SplitHostPort(s.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if configured, _, _ := net.SplitHostPort(s.options.Addr); configured == "::" {
			host = "::1"
		}
	}
	return s.scheme() + "://" + net.JoinHostPort(host, port)
}

// scheme is that of the addresses of this server.
func (s *Server) scheme() string {
	if s.tls == nil {
		return "http"
	}
	return "https"
}

// hosts are the names that the certificate has to cover in addition to those of
// this machine.
func (s *Server) hosts() []string {
	host, _, _ := net.SplitHostPort(s.options.Addr) // validated with the options
	if s.public == nil {
		return []string{host}
	}
	return []string{host, s.public.Hostname()}
}

// CAPEM is the certificate that a client needs to trust the server, nil
// without TLS or with a certificate of the operator.
func (s *Server) CAPEM() []byte { return s.tls.CAPEM() }

// knownHost reports whether the Host of a request is one of this server's: an
// address in numbers, a name of this machine, of the listen or the public
// address, or of the operator's certificate. Any other name may have been pointed
// here by its owner, whose web pages could then read the responses (DNS rebinding).
// HTTP/1.0 has no Host.
func (s *Server) knownHost(hostport string) bool {
	if u, err := url.Parse("http://" + hostport); err != nil || u.Host != hostport || !protocol.ValidPort(u) { // it is not valid in a URL
		return false
	}
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if host == "" || net.ParseIP(host) != nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	names, _ := certificate.Names(s.hosts())
	if machine, err := os.Hostname(); err == nil {
		names = append(names, machine)
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	return s.tls.Covers(host)
}

// requestHost is the host for the addresses in a response: that of the request if
// it is known, otherwise the one that the server listens on.
func (s *Server) requestHost(r *http.Request) string {
	if r.Host != "" && s.knownHost(r.Host) {
		return r.Host
	}
	if r.Host != "" {
		s.log.Warn("the address in the response is not that of the request; give the server its address with --public-url",
			"request", requestID(r.Context()), "host", r.Host)
	}
	_, own, _ := strings.Cut(s.URL(), "://")
	return own
}

// ofKnownHost passes on only requests for a known host.
func (s *Server) ofKnownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.knownHost(r.Host) {
			refuse(w, r, http.StatusMisdirectedRequest, "This server is not known under this host; use its address in numbers, or start it with --public-url")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// rejectUnread refuses a request that could not be read like any other: with an id and the
// headers of the rate limit, in the log and in the metrics.
func (s *Server) rejectUnread(conn net.Conn, status int, message string) {
	r := &http.Request{URL: &url.URL{}, Header: http.Header{}, RemoteAddr: conn.RemoteAddr().String()}
	res := bufferedResponse{header: http.Header{}}
	setUncounted(res.header, s.options.RatePerMinute)
	s.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { refuse(w, r, status, message) })).ServeHTTP(&res, r)
	res.send(conn)
}

// bufferedResponse is a response that is not written to a connection yet.
type bufferedResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *bufferedResponse) Header() http.Header         { return b.header }
func (b *bufferedResponse) WriteHeader(status int)      { b.status = status }
func (b *bufferedResponse) Write(p []byte) (int, error) { return b.body.Write(p) }

// send writes the response to a connection, which takes no further request.
func (b *bufferedResponse) send(conn net.Conn) {
	b.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	res := http.Response{StatusCode: b.status, ProtoMajor: 1, ProtoMinor: 1, Header: b.header, Close: true,
		Body: io.NopCloser(&b.body), ContentLength: int64(b.body.Len())}
	var raw bytes.Buffer
	_ = res.Write(&raw)            // a buffer takes everything
	_, _ = conn.Write(raw.Bytes()) // fails only if the client is gone
}
