package httpconn

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// messageHeader has the message of a response of the test server.
const messageHeader = "Message"

// reject is the Reject of the test server.
func reject(conn net.Conn, status int, message string) {
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d Refused\r\n%s: %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status, messageHeader, message)
}

// testServer is an http.Server behind a Listener.
type testServer struct {
	addr   string
	client *tls.Config // trusts the server; nil without TLS
	log    *testkit.Buffer
}

// certificate returns a server's configuration, and that of a client that trusts it.
func certificate() (server, client *tls.Config) {
	server, client = certificateOnce()
	return server.Clone(), client.Clone()
}

// certificateOnce makes them with the certificate of the standard library for tests.
var certificateOnce = sync.OnceValues(func() (server, client *tls.Config) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates},
		&tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
})

// serve serves a handler until the end of the test.
func serve(t *testing.T, withTLS bool, h http.HandlerFunc) *testServer {
	t.Helper()
	tcp := testkit.Must(Listen(t.Context(), "127.0.0.1:0"))(t)
	s := &testServer{addr: tcp.Addr().String(), log: &testkit.Buffer{}}
	l := &Listener{Listener: tcp, Reject: reject, Log: s.log.Logger()}
	server := &http.Server{Handler: Handled(h), ConnContext: Context, ConnState: State, MaxHeaderBytes: 4 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	if withTLS {
		l.TLS, s.client = certificate()
	}
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

// dial connects over TCP, without TLS.
func (s *testServer) dial(t *testing.T) net.Conn {
	t.Helper()
	conn := testkit.Must(net.Dial("tcp", s.addr))(t)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testkit.Timeout))
	return conn
}

// connect connects as a client does, with TLS if the server has it.
func (s *testServer) connect(t *testing.T) net.Conn {
	conn := s.dial(t)
	if s.client != nil {
		conn = tls.Client(conn, s.client.Clone())
	}
	return conn
}

// httpClient is a client of the server.
func (s *testServer) httpClient(t *testing.T) (client *http.Client, url string) {
	transport := &http.Transport{TLSClientConfig: s.client.Clone()}
	t.Cleanup(transport.CloseIdleConnections)
	scheme := "http"
	if s.client != nil {
		scheme = "https"
	}
	return &http.Client{Transport: transport, Timeout: testkit.Timeout}, scheme + "://" + s.addr
}

// unread are requests that net/http rejects by itself.
var unread = map[string]struct {
	request string
	status  int
	message string
}{
	"no HTTP":           {"this is no HTTP\r\n\r\n", 400, "Bad Request"},
	"invalid host":      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "Bad Request: malformed Host header"},
	"no host":           {"GET / HTTP/1.1\r\n\r\n", 400, "Bad Request: missing required Host header"},
	"expectation":       {"POST / HTTP/1.1\r\nHost: x\r\nExpect: x\r\nContent-Length: 1\r\n\r\nx", 417, "Expectation Failed"},
	"large headers":     {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n", 431, "Request Header Fields Too Large"},
	"transfer encoding": {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: x\r\n\r\n", 501, "Not Implemented"},
	"version":           {"GET / HTTP/3.7\r\nHost: x\r\n\r\n", 505, "HTTP Version Not Supported: unsupported protocol version"},
}

// A request that cannot be read is passed to Reject, also after one that a handler
// has served on the same connection.
func TestUnreadRequests(t *testing.T) {
	t.Parallel()
	for _, withTLS := range []bool{false, true} {
		s := serve(t, withTLS, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "of the handler") })
		for name, c := range unread {
			for before := range 3 {
				t.Run(fmt.Sprintf("%s, TLS %v, after %d", name, withTLS, before), func(t *testing.T) {
					conn := s.connect(t)
					in := bufio.NewReader(conn)
					for range before {
						_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
						res := testkit.Must(http.ReadResponse(in, nil))(t)
						if body, err := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "of the handler" || err != nil {
							t.Fatalf("the request before: %d %q %v", res.StatusCode, body, err)
						}
					}
					_, _ = io.WriteString(conn, c.request)
					res := testkit.Must(http.ReadResponse(in, nil))(t)
					if message := res.Header.Get(messageHeader); res.StatusCode != c.status || message != "The request could not be read: "+c.message {
						t.Errorf("%d %q", res.StatusCode, message)
					}
					if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
						t.Errorf("after the response: %q %v", rest, err)
					}
				})
			}
		}
	}
}

// What a handler writes is not replaced, whatever it looks like: in one write and in
// many.
func TestResponsesOfHandlersAreNotReplaced(t *testing.T) {
	t.Parallel()
	const like = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
	body := strings.Repeat(like, 1<<12)
	for _, withTLS := range []bool{false, true} {
		s := serve(t, withTLS, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body))) // not chunked: a write of its own begins with the body
			w.WriteHeader(http.StatusTeapot)
			_ = http.NewResponseController(w).Flush()
			for range 2 {
				_, _ = io.WriteString(w, body[:len(body)/2])
				_ = http.NewResponseController(w).Flush()
			}
		})
		client, url := s.httpClient(t)
		for range 3 { // over one connection
			res := testkit.Must(client.Get(url))(t)
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusTeapot || string(got) != body || err != nil {
				t.Errorf("TLS %v: %d, %d bytes of %d, %v", withTLS, res.StatusCode, len(got), len(body), err)
			}
		}
	}
}

// recorded is a connection that records what is written to it.
type recorded struct {
	net.Conn
	bytes.Buffer
}

func (r *recorded) Write(p []byte) (int, error) { return r.Buffer.Write(p) }
func (r *recorded) Read(p []byte) (int, error)  { return r.Buffer.Read(p) }

func TestOnlyResponsesOfNetHTTPAreReplaced(t *testing.T) {
	t.Parallel()
	const bad = "HTTP/1.1 400 Bad Request\r\n\r\n"
	for name, c := range map[string]struct {
		prepare func(*Conn)
		write   string
		want    string // "" = as it was written
	}{
		"a status that net/http may get": {nil, "HTTP/1.1 418 I'm a teapot\r\n\r\n", "418 The request could not be read: I'm a teapot"},
		"of HTTP/1.0":                    {nil, "HTTP/1.0 505 x\r\n\r\n", "505 The request could not be read: x"},
		"continue":                       {func(c *Conn) { c.handled.Store(true) }, "HTTP/1.1 100 Continue\r\n\r\n", ""},
		"of a handler":                   {func(c *Conn) { c.handled.Store(true) }, bad, ""},
		"idle again":                     {func(c *Conn) { c.handled.Store(true); State(c, http.StateIdle) }, bad, "400 The request could not be read: Bad Request"},
		"active":                         {func(c *Conn) { c.handled.Store(true); State(c, http.StateActive) }, bad, ""},
		"no status":                      {nil, "HTTP/1.1", ""},
		"no number":                      {nil, "HTTP/1.1 bad", ""},
		"something else":                 {nil, "HTTP/2.0 400 x", ""},
		"nothing":                        {nil, "", ""},
	} {
		below := &recorded{}
		conn := &Conn{Conn: below, listener: &Listener{Reject: func(conn net.Conn, status int, message string) {
			_, _ = fmt.Fprintf(conn, "%d %s", status, message)
		}}}
		if c.prepare != nil {
			c.prepare(conn)
		}
		if c.want == "" {
			c.want = c.write
		}
		if n, err := conn.Write([]byte(c.write)); n != len(c.write) || err != nil || below.String() != c.want {
			t.Errorf("%s: %q, %d of %d bytes, %v", name, below.String(), n, len(c.write), err)
		}
	}
	State(&recorded{}, http.StateIdle) // the connection of another listener
}

// A request that came over no Conn is passed on.
func TestHandledOverOtherConnections(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Handled(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	testkit.Equal(t, w.Code, http.StatusNotFound)
}
