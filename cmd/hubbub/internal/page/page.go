// Package page serves a session live as a page for an audience: the timeline, the
// transcript, and captions for streaming software.
//
// The page is one document without external resources. It reads the session as
// server-sent events. A client has no queue: each message is the difference between
// what the client has and the newest state, so that a slow client skips states, and a
// late one gets all of it. The address has an unguessable path, because whoever knows
// it can read the session.
//
// Where to look: page.go is the server, state.go what it sends, live.html, live.css
// and live.js the page.
package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/export"
	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
)

//go:embed live.html
var liveHTML string

//go:embed live.css
var liveCSS string

//go:embed live.js
var liveJS string

const (
	// maxClients bounds the clients that follow the session at the same time.
	maxClients = 64
	// refreshInterval is how often clients learn what has changed.
	refreshInterval = 200 * time.Millisecond
	// writeLimit bounds the time that a client takes for a message.
	writeLimit = 10 * time.Second
	// keepAlive is the longest time without a message.
	keepAlive = 15 * time.Second
	// closeLimit bounds the time in which clients get the end of the session.
	closeLimit = 2 * time.Second
)

// policy allows the page its own script, style and events, and nothing else.
var policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	export.PolicyHash(liveJS), export.PolicyHash(export.Theme+liveCSS))

// document is the page.
var document = strings.NewReplacer("/*css*/", export.Theme+liveCSS, "/*js*/", liveJS).Replace(liveHTML)

// ParseAddress completes the address to listen on: HOST:PORT, or a port alone, which
// is one of the loopback interface.
func ParseAddress(address string) (string, error) {
	if _, err := strconv.ParseUint(address, 10, 16); err == nil {
		address = ":" + address
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%q is not HOST:PORT", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q has no port from 0 to 65535", address)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// Server serves the page of one session. It has two goroutines and those of its
// connections; Close ends them.
type Server struct {
	url     string
	secret  string // the path
	http    *http.Server
	board   *board
	clients atomic.Int64
	ctx     context.Context // of the goroutine that refreshes what clients see
	cancel  context.CancelFunc
	done    sync.WaitGroup
	serving error // how accepting connections failed
	failed  error // how refreshing failed
}

// Listen serves a session at an address of ParseAddress. state returns the session
// at the moment; it is called from several goroutines, one at a time.
func Listen(address string, state func() State) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, hint.Add(fmt.Errorf("the page cannot be served at %s: %w", address, err), "Choose another address with --page; with port 0 a free port is found.")
	}
	host, _, _ := net.SplitHostPort(address)
	s := &Server{secret: strings.ToLower(rand.Text()), board: &board{state: state, changed: make(chan struct{})}}
	s.url = "http://" + shownAddress(host, listener.Addr()) + "/" + s.secret
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // standard error may be the screen
	}
	s.done.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.serving = fmt.Errorf("the page was not served to the end: %w", err)
		}
	})
	s.done.Go(func() {
		s.failed = recovered.Guard(func() error {
			protocol.Every(s.ctx, refreshInterval, func() {
				if s.clients.Load() > 0 {
					s.board.refresh()
				}
			})
			return nil
		})
	})
	return s, nil
}

// shownAddress is the address of a listener as displayed: where it listens on all
// interfaces, that of the first one which others can reach.
func shownAddress(host string, at net.Addr) string {
	_, port, _ := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		interfaces, _ := net.InterfaceAddrs()
		for _, a := range interfaces {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
				host = n.IP.String()
				break
			}
		}
	}
	return net.JoinHostPort(host, port)
}

// URL is the address of the page.
func (s *Server) URL() string { return s.url }

// Close sends the clients the end of the session and ends the server.
func (s *Server) Close() error {
	s.cancel()
	s.board.end()
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.done.Wait()
	return errors.Join(s.failed, s.serving)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeLimit))
	secret, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case subtle.ConstantTimeCompare([]byte(secret), []byte(s.secret)) != 1 || rest != "" && rest != "events":
		http.Error(w, "There is no page here. Open the address that hubbub shows.", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "The page can only be read.", http.StatusMethodNotAllowed)
	case rest == "events":
		s.events(w, r)
	default:
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, document)
	}
}

// events sends a client the session until it or the client ends.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if s.clients.Add(1) > maxClients {
		s.clients.Add(-1)
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("More than %d clients.", maxClients), http.StatusServiceUnavailable)
		return
	}
	defer s.clients.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the end of the client is noticed by reading
	send := func(format string, data ...any) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeLimit))
		_, err := fmt.Fprintf(w, format, data...)
		return err == nil && control.Flush() == nil
	}
	s.board.refresh()
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for seen := int64(0); ; {
		message, version, changed, over := s.board.since(seen)
		if message != nil && !send("data: %s\n\n", message) {
			return
		}
		seen = version
		if over {
			send("event: end\ndata: {}\n\n")
			return
		}
		select {
		case <-changed:
		case <-quiet.C:
			if !send(":\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
