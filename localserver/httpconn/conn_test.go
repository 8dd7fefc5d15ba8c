package httpconn

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol/testkit"
)

// accepted is the server's side of a connection over TCP, and the client's side.
func accepted(t *testing.T, config *tls.Config) (server *Conn, client *net.TCPConn) {
	t.Helper()
	tcp := testkit.Must(Listen(t.Context(), "127.0.0.1:0"))(t)
	l := &Listener{Listener: tcp, TLS: config, Reject: reject, Log: (&testkit.Buffer{}).Logger()}
	t.Cleanup(func() { _ = l.Close() })
	dialed := testkit.Must(net.Dial("tcp", l.Addr().String()))(t)
	conn := testkit.Must(l.Accept())(t)
	for _, c := range []net.Conn{dialed, conn} {
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(testkit.Timeout))
	}
	return conn.(*Conn), dialed.(*net.TCPConn)
}

// Both sides of a connection read what the other one writes; after CloseWrite the
// other one reads the end and can still write.
func TestCloseWrite(t *testing.T) {
	t.Parallel()
	server, client := certificate()
	for name, c := range map[string]struct{ server, client *tls.Config }{"plain": {}, "TLS": {server, client}} {
		t.Run(name, func(t *testing.T) {
			conn, tcp := accepted(t, c.server)
			var peer interface {
				net.Conn
				CloseWrite() error
			} = tcp
			if c.client != nil {
				peer = tls.Client(tcp, c.client)
			}
			if below, ok := conn.NetConn().(*net.TCPConn); !ok || below.RemoteAddr().String() != tcp.LocalAddr().String() {
				t.Errorf("the connection below is %T", conn.NetConn())
			}
			got := make(chan string)
			go func() {
				_, _ = io.WriteString(peer, "request")
				response, err := io.ReadAll(peer)
				if err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(peer, " and more")
				_ = peer.CloseWrite()
				got <- string(response)
			}()
			p := make([]byte, len("request"))
			if _, err := io.ReadFull(conn, p); err != nil || string(p) != "request" {
				t.Fatalf("%q %v", p, err)
			}
			_, _ = io.WriteString(conn, "response")
			if err := conn.CloseWrite(); err != nil {
				t.Error(err)
			}
			testkit.Equal(t, <-got, "response", "the client reads")
			if rest, err := io.ReadAll(conn); string(rest) != " and more" || err != nil {
				t.Errorf("after CloseWrite: %q %v", rest, err)
			}
		})
	}
}

// A request in plain HTTP to a server with TLS is rejected in plain HTTP; what is no
// request is not.
func TestPlainRequestsToTLS(t *testing.T) {
	t.Parallel()
	s := serve(t, true, func(http.ResponseWriter, *http.Request) { t.Error("a handler was called") })
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
		conn := s.dial(t)
		_, _ = io.WriteString(conn, method+" / HTTP/1.1\r\nHost: x\r\n\r\n")
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
			t.Errorf("%s: after the response: %q %v", method, rest, err)
		}
		if message := res.Header.Get(messageHeader); res.StatusCode != 400 || !strings.Contains(message, "https") {
			t.Errorf("%s: %d %q", method, res.StatusCode, message)
		}
	}
	testkit.Equal(t, s.log.String(), "", "rejected requests are logged")
	for name, text := range map[string]string{"text": "SSH-2.0-x\r\n", "no method": "GETS / HTTP/1.1\r\n\r\n", "a short record": "\x16\x03\x01\x00"} {
		conn := s.dial(t)
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(conn) // the end may be a reset
		if strings.Contains(string(got), "HTTP") {
			t.Errorf("%s: %q", name, got)
		}
		if n := strings.Count(s.log.String(), "TLS handshake failed"); n == 0 || !strings.Contains(s.log.String(), conn.LocalAddr().String()) {
			t.Errorf("%s: the log has %q", name, s.log)
		}
	}
}

// pipe is a Conn with TLS over a connection in memory.
func pipe(reject func(net.Conn, int, string)) (server *Conn, client net.Conn) {
	config, _ := certificate()
	below, client := net.Pipe()
	server = &Conn{tcp: below, tls: tls.Server(below, config), listener: &Listener{Reject: reject, Log: (&testkit.Buffer{}).Logger()}}
	server.Conn = server.tls
	return server, client
}

// A client that does not finish the handshake, or does not read the response to a
// request in plain HTTP, holds its connection for handshakeTimeout.
func TestHandshakeTimeout(t *testing.T) {
	t.Parallel()
	certificate() // outside of the bubbles: it uses sockets
	for name, sent := range map[string]string{"silent": "", "half a record": "\x16\x03\x01", "plain": "GET / HTTP/1.1\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				written := make(chan error, 1)
				server, client := pipe(func(conn net.Conn, _ int, _ string) {
					_, err := io.WriteString(conn, "a response that nobody reads")
					written <- err
				})
				go func() { _, _ = io.WriteString(client, sent) }()
				began := time.Now()
				n, err := server.Read(make([]byte, 1))
				if n != 0 || err != io.EOF {
					t.Errorf("%d %v", n, err)
				}
				testkit.Equal(t, time.Since(began), handshakeTimeout, "after")
				if name == "plain" {
					if err := <-written; err == nil {
						t.Error("the response was read")
					}
				}
				_ = client.Close()
				_ = server.Close()
			})
		})
	}
}

// After the handshake, a client may be silent for longer than it may take.
func TestHandshakeOnce(t *testing.T) {
	t.Parallel()
	_, trusting := certificate()
	synctest.Test(t, func(t *testing.T) {
		server, below := pipe(reject)
		client := tls.Client(below, trusting)
		go func() {
			_, _ = io.WriteString(client, "first")
			time.Sleep(2 * handshakeTimeout)
			_, _ = io.WriteString(client, "second")
			_ = client.Close()
		}()
		if got, err := io.ReadAll(server); string(got) != "firstsecond" || err != nil {
			t.Errorf("%q %v", got, err)
		}
		_ = server.NetConn().Close()
	})
}
