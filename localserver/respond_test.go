package localserver

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol/testkit"
)

// The response to a body that does not arrive in time has its own time to be
// sent.
func TestLateBodyGetsAResponse(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewUnstartedServer(new(Server).handle(func(w http.ResponseWriter, r *http.Request) error {
				_, err := readBody(w, r, maxBody)
				if err == nil {
					t.Error("the body was read")
				}
				return err
			}))
			h.Config.ReadTimeout = 3 * time.Second // the handshake of TLS is included, also on a busy machine
			h.Config.WriteTimeout = h.Config.ReadTimeout
			h.EnableHTTP2 = http2
			h.StartTLS()
			defer h.Close()
			body, unsent := io.Pipe()
			defer unsent.Close()
			client := h.Client()
			client.Timeout = testkit.Timeout
			res := testkit.Must(client.Post(h.URL, "", body))(t)
			defer res.Body.Close()
			if res.StatusCode != http.StatusRequestTimeout || (res.ProtoMajor == 2) != http2 {
				t.Errorf("%s: status %d, want 408", res.Proto, res.StatusCode)
			}
		})
	}
}

// Who is refused is told at once, not when the body has arrived. The connection takes another
// request after all of the body, and none after a part of it.
func TestRefusalBeforeTheBody(t *testing.T) {
	t.Parallel()
	for rest, again := range map[string]bool{"body": true, "bo": false} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{log: slog.New(slog.DiscardHandler), options: Options{}.withDefaults()}
			s.metrics = newMetrics(s)
			server, client := net.Pipe()
			l := &oneConnection{conns: make(chan net.Conn, 1)}
			l.conns <- server
			h := http.Server{Handler: s.wrap(s.handle(func(http.ResponseWriter, *http.Request) error { return refused(403, "No") }))}
			go func() { _ = h.Serve(l) }()
			in := bufio.NewReader(client)
			head := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
			_, _ = io.WriteString(client, head)
			began := time.Now()
			res, err := http.ReadResponse(in, nil)
			testkit.NoError(t, err)
			if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 403 || time.Since(began) > 0 {
				t.Errorf("%d after %s, %v", res.StatusCode, time.Since(began), err)
			}
			_, _ = io.WriteString(client, rest)
			time.Sleep(2 * discardTimeout)
			_, _ = io.WriteString(client, head)
			if _, err = http.ReadResponse(in, nil); (err == nil) != again {
				t.Errorf("another request after %q: %v", rest, err)
			}
			_ = client.Close()
			_ = h.Close()
		})
	}
}

// oneConnection is a listener of the connections in a channel.
type oneConnection struct {
	net.Listener
	conns chan net.Conn
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l *oneConnection) Close() error { close(l.conns); return nil }

// deadlines is the response to an upload, which has no other time than that of its deadlines.
type deadlines struct {
	http.ResponseWriter
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// TestUploadPostponesDeadlines: an upload may take long, as long as data arrives. Over HTTP/2 the deadline of
// the response would end it.
func TestUploadPostponesDeadlines(t *testing.T) {
	t.Parallel()
	d := &deadlines{}
	body := &uploadReader{body: strings.NewReader("some bytes"), control: http.NewResponseController(d), left: 100}
	for range 2 {
		d.read, d.write = time.Time{}, time.Time{}
		testkit.Must(body.Read(make([]byte, 5)))(t)
		if time.Until(d.read) <= 0 || d.write.Sub(d.read) < responseTimeout {
			t.Errorf("read until %v, respond until %v", d.read, d.write)
		}
	}
}
