package localserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol/testkit"
)

// Addresses and metrics are for known hosts only: a page under a foreign name
// that leads to this server gets neither. With a public address, all addresses are below it.
func TestForeignHosts(t *testing.T) {
	t.Parallel()
	h := serve(t, plain)
	var log logBuffer
	public := serve(t, plain, log.use, func(o *setup) { o.PublicURL = "https://hubbub.example.org/x/" })
	testkit.Contains(t, log.String(), "address="+public.Addr().String(), "the log does not say which port was picked")
	ask := func(h *host, method, path, host, body string) reply {
		t.Helper()
		r := testkit.Must(http.NewRequest(method, "http://"+h.Addr().String()+path, strings.NewReader(body)))(t)
		r.Host = host
		r.Header.Set("Authorization", "Bearer "+testKey)
		return h.send(r)
	}
	own := h.Addr().String()
	for host, want := range map[string]string{"evil.example": own, "localhost.evil.example:80": own, "localhost:1": "localhost:1",
		"127.0.0.1:abc": own, "localhost:99999": own, "localhost:1:2": own, "[::1": own, "::1": own, // no valid part of an address
		"LOCALHOST": "LOCALHOST", "10.0.0.1:99": "10.0.0.1:99", "[::1]:5": "[::1]:5", own: own} {
		for path, scheme := range map[string]string{"/v1/live": "ws", "/v1/media/input": "http"} {
			testkit.Contains(t, string(ask(h, "POST", path, host, `{"url":"media://x"}`).body), `"`+scheme+"://"+want+"/v1/", path, host)
		}
		if res := ask(h, "GET", "/metrics", host, ""); want == own && host != own {
			res.apiError(t, 421)
		} else if res.StatusCode != 200 {
			t.Errorf("metrics for %s: %d", host, res.StatusCode)
		}
	}
	for path, want := range map[string]string{"/v1/live": "wss://hubbub.example.org/x/v1/stream/", "/v1/media/input": "https://hubbub.example.org/x/v1/media/"} {
		testkit.Contains(t, string(ask(public, "POST", path, own, `{"url":"media://x"}`).body), `"`+want, path)
	}
	if res := ask(public, "GET", "/metrics", "hubbub.example.org", ""); res.StatusCode != 200 {
		t.Errorf("metrics for the public host: %d", res.StatusCode)
	}
	ask(public, "GET", "/metrics", "other.example.org", "").apiError(t, 421)
}

// failing is a listener whose next Accept returns an error, and the one after that no
// connection any more.
type failing struct {
	net.Listener
	err error
}

func (l *failing) Accept() (net.Conn, error) {
	err := l.err
	l.err = io.EOF
	return nil, err
}

// A server that has too many open files to accept a connection says so.
func TestErrorsOfAcceptAreLogged(t *testing.T) {
	t.Parallel()
	tcp := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer tcp.Close()
	var log logBuffer
	s := &Server{log: log.Logger()}
	if err := s.newHTTPServer(nil).Serve(&failing{tcp, syscall.EMFILE}); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if log.count("level=WARN") != 1 || log.count("too many open files") != 1 {
		t.Error(log.String())
	}
}
