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
	h := httptest.NewUnstartedServer(new(Server).handle(func(w http.ResponseWriter, r *http.Request) error {
		_, err := readBody(w, r, maxBody)
		if err == nil {
			t.Error("the body was read")
		}
		return err
	}))
	h.Config.ReadTimeout = 3 * time.Second // the handshake of TLS is included, also on a busy machine
	h.Config.WriteTimeout = h.Config.ReadTimeout
	h.StartTLS()
	defer h.Close()
	body, unsent := io.Pipe()
	defer unsent.Close()
	client := h.Client()
	client.Timeout = testkit.Timeout
	res := testkit.Must(client.Post(h.URL, "", body))(t)
	defer res.Body.Close()
	testkit.Equal(t, res.StatusCode, http.StatusRequestTimeout, "status")
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

// readDeadline is the response to an upload, which has no other time than that of its deadline.
type readDeadline struct {
	http.ResponseWriter
	at time.Time
}

func (d *readDeadline) SetReadDeadline(t time.Time) error { d.at = t; return nil }

// TestUploadPostponesDeadline: an upload may take long, as long as data arrives.
func TestUploadPostponesDeadline(t *testing.T) {
	t.Parallel()
	d := &readDeadline{}
	body := &uploadReader{body: strings.NewReader("some bytes"), control: http.NewResponseController(d), left: 100}
	for range 2 {
		d.at = time.Time{}
		testkit.Must(body.Read(make([]byte, 5)))(t)
		if time.Until(d.at) <= 0 {
			t.Errorf("read until %v", d.at)
		}
	}
}
