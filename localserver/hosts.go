package localserver

import (
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
)

// knownHost reports whether the Host of a request is one of this server's: an
// address in numbers, a name of this machine, of the listen or the public
// address, or of the operator's certificate. Any other name may be one that its
// owner has pointed here, so that a page of his can read what is answered (DNS
// rebinding). HTTP/1.0 has no Host.
func (s *Server) knownHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if host == "" || net.ParseIP(host) != nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	names, _ := certificateNames(s.hosts())
	if machine, err := os.Hostname(); err == nil {
		names = append(names, machine)
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	return s.tls != nil && s.tls.covers(host)
}

// requestHost is the host for the addresses in an answer: that of the request if
// it is known, otherwise the one that the server listens on.
func (s *Server) requestHost(r *http.Request) string {
	if r.Host != "" && s.knownHost(r.Host) {
		return r.Host
	}
	if r.Host != "" {
		s.log.Warn("the address in the answer is not that of the request; give the server its address with --public-url",
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
