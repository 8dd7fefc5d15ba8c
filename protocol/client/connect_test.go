package client

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
	"hubbub/protocol/trace"

	"github.com/gorilla/websocket"
)

var okResponse = respond(200, "application/json", `{"status":"OK","message":"m"}`)

// The certificate of the built-in server is as valid as when it was made, whatever the clock
// says since.
func TestTrustAtAnotherTime(t *testing.T) {
	for name, began := range map[string]time.Time{
		"put forward": time.Now().AddDate(-10, 0, 0), "set back": time.Now().AddDate(10, 0, 0),
	} {
		address, ca := protocoltest.ServeTLS(t, okResponse, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = began.Add(-time.Minute), began.Add(time.Minute)
		})
		client := newTestClient(t, Options{BaseURL: address, CACert: ca, Now: func() time.Time { return began }})
		if _, err := client.Test(t.Context()); err != nil {
			t.Errorf("a clock that was %s: %v", name, err)
		}
	}
}

func TestTrust(t *testing.T) {
	address, ca := protocoltest.ServeTLS(t, okResponse, nil)
	file := filepath.Join(t.TempDir(), "ca.pem")
	testkit.NoError(t, os.WriteFile(file, ca, 0o600))
	_, other := protocoltest.Certificate(t, nil)
	for _, c := range []struct {
		name string
		o    Options
		says string // "" = trusted
	}{
		{"nothing", Options{}, "signed by an authority that this machine does not know"},
		{"another certificate", Options{CACert: other}, "authority that this machine does not know"},
		{"the certificate", Options{CACert: ca}, ""},
		{"a file", Options{CAFile: file}, ""},
		{"a file and another certificate", Options{CAFile: file, CACert: other}, ""},
		{"insecure", Options{Insecure: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.BaseURL = address
			client := newTestClient(t, c.o)
			_, err := client.Test(context.Background())
			_, wsErr := client.OpenStream(context.Background(), streamAt(address)) // no WebSocket there, but TLS comes first
			if c.says == "" {
				var e *ResponseError
				if err != nil || !errors.As(wsErr, &e) {
					t.Errorf("%v; %v", err, wsErr)
				}
				return
			}
			for _, err := range []error{err, wsErr} {
				explained(t, err, c.says, "--ca FILE (check that a FILE given has it), or accept any certificate with --insecure")
			}
		})
	}
}

func TestCAFileThatIsNone(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	testkit.NoError(t, os.WriteFile(empty, []byte("hello"), 0o600))
	for file, says := range map[string]string{
		empty:                      "holds no certificate",
		filepath.Join(dir, "gone"): "no such file",
		dir:                        "directory",
	} {
		_, err := New(Options{BaseURL: "https://example.org", APIKey: "k", CAFile: file})
		explained(t, err, says, "")
	}
}

// A certificate that is not good is refused by requests and probes, and a probe sees it all the same.
func TestCertificatesThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		name       string
		change     func(*x509.Certificate)
		says, hint string
		match      bool // the name
	}{
		{"another name", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"a.example", "b.example"} },
			"issued for a.example, b.example, by Test Authority", "a proxy that intercepts TLS. Your own server: --insecure", false},
		{"another address", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, "issued for 10.0.0.1", "--server", false},
		{"common name only", func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames, c.Subject.CommonName = nil, nil, "localhost"
		}, "issued for no name", "subject alternative name", false},
		{"of a client", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} },
			"incompatible key usage", "issue another one", true},
		{"expired", func(c *x509.Certificate) {
			c.NotAfter = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
			c.NotBefore = c.NotAfter.Add(-1)
		}, "expired on 2020-01-02T03:04:05Z; this machine's clock says 20", "renew", true},
		{"not yet", func(c *x509.Certificate) {
			c.NotBefore = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
			c.NotAfter = c.NotBefore.Add(1)
		}, "not valid before 2090-01-01T00:00:00Z; this machine's clock says 20", "unless the clock", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, ca := protocoltest.ServeTLS(t, okResponse, c.change)
			client := newTestClient(t, Options{BaseURL: address, CACert: ca})
			_, err := client.Test(context.Background())
			explained(t, err, c.says, c.hint)
			info, err := probeTo(t, client, nil)
			explained(t, err, c.says, c.hint)
			if info.Verified || info.NameMatches != c.match || info.Issuer == "" || info.NotAfter.IsZero() {
				t.Errorf("%+v", info)
			}
			info, err = probeTo(t, newTestClient(t, Options{BaseURL: address, Insecure: true}), nil)
			if err != nil || info.Verified {
				t.Errorf("insecure: %+v, %v", info, err)
			}
		})
	}
}

func TestConnectionsThatFail(t *testing.T) {
	closed := protocoltest.Listen(t, func(net.Conn) {})
	// The port of an outgoing connection: nothing listens there, and nobody else gets it.
	outgoing := testkit.Must(net.Dial("tcp", protocoltest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })))(t)
	defer outgoing.Close()
	refused := outgoing.LocalAddr().String()
	plain := httptest.NewServer(okResponse)
	defer plain.Close()
	overTLS, _ := protocoltest.ServeTLS(t, okResponse, nil)
	greeting := protocoltest.Listen(t, func(c net.Conn) {
		_, _ = io.CopyN(io.Discard, c, 16) // first: net/http logs a response that comes before the request
		_, _ = io.WriteString(c, "SSH-2.0-server\r\n")
	})
	silent := protocoltest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	for _, c := range []struct {
		name, base, says, hint string
		timeout                time.Duration
	}{
		{"refused", "https://" + refused, refused + " refuses connections", "Nothing listens there", 0},
		{"closed at once", "http://" + closed, "", "", 0}, // EOF or a reset, by chance
		{"TLS expected, plain found", "https" + strings.TrimPrefix(plain.URL, "http"), "responds without TLS", "http:// instead of https://", 0},
		{"plain expected, TLS found", "http" + strings.TrimPrefix(overTLS, "https"), "HTTP request to an HTTPS server", "https:// instead of http://", 0},
		{"TLS expected, SSH found", "https://" + greeting, "does not speak TLS", "port", 0},
		{"HTTP expected, SSH found", "http://" + greeting, "does not respond in HTTP", "port", 0},
		{"silence in TLS", "https://" + silent, "no response from " + silent + " within 200ms", "firewall", 200 * time.Millisecond},
		{"silence in HTTP", "http://" + silent, "no response from " + silent + " within 200ms", "firewall", 200 * time.Millisecond},
		{"no such name", "https://no-such-host.invalid", "", "network", 0}, // not found, or no name server, by machine
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newTestClient(t, Options{BaseURL: c.base, Timeout: c.timeout})
			_, err := client.Test(context.Background())
			_, wsErr := client.OpenStream(context.Background(), streamAt(c.base))
			for _, err := range []error{err, wsErr} {
				explained(t, err, c.says, c.hint)
			}
		})
	}
}

func TestNameLookUpErrors(t *testing.T) {
	client := newTestClient(t, Options{BaseURL: "https://nowhere.example"})
	private := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}
	dial := func(at net.Addr, number syscall.Errno) error {
		return &net.OpError{Op: "dial", Addr: at, Err: os.NewSyscallError("connect", number)}
	}
	for _, c := range []struct {
		err  error
		says string
		hint string
	}{
		{&net.DNSError{Name: "nowhere.example", IsNotFound: true}, "no host has the name nowhere.example", "VPN"},
		{&net.DNSError{Name: "nowhere.example", Server: "10.0.0.53:53", IsTimeout: true}, "looking up the name nowhere.example failed: no response (name server 10.0.0.53:53)", "name server"},
		{&net.DNSError{Name: "nowhere.example", Server: "10.0.0.53:53", IsNotFound: true}, "no host has the name nowhere.example (name server 10.0.0.53:53)", "VPN"},
		{&net.DNSError{Name: "nowhere.example", Server: "10.0.0.53:53", Err: "server misbehaving", IsTemporary: true}, "looking up the name nowhere.example failed: server misbehaving (name server 10.0.0.53:53)", "name server"},
		{&net.OpError{Op: "dial", Addr: private, Err: os.ErrDeadlineExceeded}, "no response from nowhere.example:443 (10.1.2.3) within 1s", "VPN"},
		{&net.OpError{Op: "read", Addr: private, Err: os.ErrDeadlineExceeded}, "no response from nowhere.example:443 within 1s", "accepts connections"},
		{dial(private, syscall.ENETUNREACH), "no route to nowhere.example:443 (10.1.2.3)", "VPN"},
		{dial(private, syscall.EHOSTUNREACH), "no route to nowhere.example:443 (10.1.2.3)", "firewall"},
		{dial(private, syscall.ECONNREFUSED), "nowhere.example:443 (10.1.2.3) refuses connections", "or a firewall rejects"},
		{dial(private, syscall.EACCES), "this machine does not permit connections to nowhere.example:443 (10.1.2.3)", "firewall"},
		{dial(&net.TCPAddr{IP: net.IPv4zero, Port: 443}, syscall.ECONNREFUSED), "the name nowhere.example is looked up as 0.0.0.0", "filters"},
		{errors.New("readLoopPeekFailLocked: %!w(<nil>)"), "does not respond in HTTP", "port"},
		{dial(nil, syscall.EADDRNOTAVAIL), "connecting to nowhere.example:443: connect: ", "--server"},
		{io.EOF, "nowhere.example:443 closed the connection without a response", "a load balancer whose service does not run"},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "nowhere.example:443 reset the connection", "smaller MTU"},
		{tls.AlertError(40), "TLS handshake with nowhere.example:443 failed", "certificate of the client"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "nowhere.example:443 requires a certificate of the client", "operator"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: no application protocol")}, "nowhere.example:443 does not offer HTTP/1.1", "ALPN"},
	} {
		err := explainNetwork(context.Background(), client.base, time.Second, c.err)
		explained(t, err, c.says, c.hint)
		if !errors.Is(err, c.err) {
			t.Errorf("%v is not %v", err, c.err)
		}
	}
}

// TestWhatARequestWaitedFor: net/http's own timeout does not say whether a name server, the port
// or the service did not respond.
func TestWhatARequestWaitedFor(t *testing.T) {
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	noNameServer := &net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: hang}}
	for _, c := range []struct {
		dial       func(context.Context, string, string) (net.Conn, error)
		says, hint string
	}{
		{hang, "no response from service.example:443 within 50ms", "a firewall may drop the packets, or the address needs a VPN"},
		{noNameServer.DialContext, "looking up the name service.example failed: no response from a name server", "name server"},
	} {
		client := newTestClient(t, Options{BaseURL: "https://service.example", Timeout: 50 * time.Millisecond})
		client.http.Transport.(*http.Transport).DialContext = c.dial
		_, err := client.Test(context.Background())
		explained(t, err, c.says, c.hint)
	}
}

// TestExpiredAuthority: the certificate of the service is not what expired.
func TestExpiredAuthority(t *testing.T) {
	leaf := &x509.Certificate{Raw: []byte("leaf"), NotAfter: time.Now().Add(time.Hour)}
	old := &x509.Certificate{Raw: []byte("authority"), Subject: pkix.Name{CommonName: "Old CA"}, NotAfter: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)}
	what, fix := tlsCause(&url.URL{Scheme: "https", Host: "service.example"}, &tls.CertificateVerificationError{
		UnverifiedCertificates: []*x509.Certificate{leaf, old}, Err: x509.CertificateInvalidError{Cert: old, Reason: x509.Expired}})
	if !strings.HasPrefix(what, "the certificate of CN=Old CA, an authority of service.example:443, expired on 2020-01-02T03:04:05Z") || !strings.Contains(fix, "--ca") {
		t.Errorf("%s; %s", what, fix)
	}
}

// TestHintAuthority: a certificate that another one signed, and that comes alone, may lack the
// ones in between.
func TestHintAuthority(t *testing.T) {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "service.example"}, Issuer: pkix.Name{CommonName: "Public CA 7"}}
	root := &x509.Certificate{Subject: leaf.Issuer, Issuer: leaf.Issuer}
	for _, c := range []struct {
		chain []*x509.Certificate
		says  bool
	}{{[]*x509.Certificate{leaf}, true}, {[]*x509.Certificate{leaf, root}, false}, {[]*x509.Certificate{root}, false}} {
		_, fix := tlsCause(&url.URL{}, &tls.CertificateVerificationError{UnverifiedCertificates: c.chain, Err: x509.UnknownAuthorityError{}})
		if strings.Contains(fix, "intermediate certificates") != c.says || !strings.Contains(fix, "--ca FILE") {
			t.Errorf("%d certificates: %s", len(c.chain), fix)
		}
	}
}

// TestIdleConnectionThatEnds: a service, or a proxy, may end a connection when the next request is already on its way.
func TestIdleConnectionThatEnds(t *testing.T) {
	address := protocoltest.Listen(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		if req, err := http.ReadRequest(r); err == nil {
			if _, sent := req.Header["Idempotency-Key"]; sent {
				t.Error("a header that must not be sent")
			}
			body := `{"status":"OK","message":"m","id":"7","url":"ws://host/s?token=tok-123"}`
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = r.ReadByte() // the next request
		}
	})
	client := newTestClient(t, Options{BaseURL: "http://" + address})
	testkit.Must(client.Test(t.Context()))(t)
	if live, err := client.CreateStream(t.Context(), nil); err != nil || live.ID != "7" {
		t.Errorf("%+v, %v; %s", live, err, hint.Of(err))
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Client, string) error{
		"Test": func(ctx context.Context, c *Client, _ string) error { _, err := c.Test(ctx); return err },
		"OpenStream": func(ctx context.Context, c *Client, host string) error {
			_, err := c.OpenStream(ctx, "wss://"+host)
			return err
		},
	} {
		connected := make(chan struct{}, 8) // more than there are connections
		silent := protocoltest.Listen(t, func(c net.Conn) {
			connected <- struct{}{}
			_, _ = io.Copy(io.Discard, c)
		})
		client := newTestClient(t, Options{BaseURL: "https://" + silent})
		cancelled, cancel := context.WithCancel(context.Background())
		go func() {
			<-connected
			cancel()
		}()
		if err := call(cancelled, client, silent); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
		short, release := context.WithTimeout(context.Background(), 50*time.Millisecond)
		err := call(short, client, silent)
		release()
		explained(t, err, "no response from "+silent+" in time", "")
	}
}

// TestHandshakeIsInterrupted: a service that does not respond to the handshake is not waited for.
func TestHandshakeIsInterrupted(t *testing.T) {
	for name, open := range map[string]func(context.Context, *Client, string) error{
		"OpenStream": func(ctx context.Context, c *Client, address string) error {
			_, err := c.OpenStream(ctx, address)
			return err
		},
		"Dial": func(ctx context.Context, c *Client, address string) error {
			_, _, err := c.Dial(ctx, address, http.Header{})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		address := protocoltest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		}))
		client := newTestClient(t, Options{BaseURL: address, Timeout: time.Hour})
		if err := open(ctx, client, streamAt(address)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHandshakeRejected(t *testing.T) {
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		says string
		hint string
	}{
		{"web filter", respond(403, "text/html", "<title>Access denied</title>"), `403 Forbidden: a web page, "Access denied"`, "headers Upgrade and Connection"},
		{"page", respond(200, "text/html", "<title>App</title>"), `this is not a WebSocket: a web page, "App"`, "headers Upgrade and Connection"},
		{"token", respond(401, "application/json", `{"requestId":"r-9","message":"token was used"}`), "401 Unauthorized: token was used (request r-9)", "start again"},
		{"token, as forbidden", respond(403, "application/json", `{"requestId":"r-9","message":"token was used"}`), "403 Forbidden: token was used (request r-9)", "start again"},
		{"gone", respond(404, "application/json", `{"requestId":"r","message":"m"}`), "404 Not Found: m", "address"},
		{"proxy", respond(502, "text/html", "<title>Bad gateway</title>"), `a web page, "Bad gateway"`, "headers Upgrade and Connection"},
		{"moved", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.org/x", http.StatusFound)
		}, "302 Found: it redirects to https://example.org/x", "--public-url"},
		{"the header Upgrade is lost", respond(426, "application/json", `{"requestId":"r","message":"m"}`), "426", "headers Upgrade and Connection"},
		{"no WebSocket", okResponse, "this is not a WebSocket", "headers Upgrade and Connection"},
		{"wrong accept", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Sec-WebSocket-Accept", "wrong")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}, "101 Switching Protocols: this is not a WebSocket", "headers Upgrade and Connection"},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, ca := protocoltest.ServeTLS(t, c.h, nil)
			log := trace.NewLog()
			client := newTestClient(t, Options{BaseURL: address, CACert: ca, Tracer: log})
			_, err := client.OpenStream(context.Background(), streamAt(address))
			if s := log.Snapshot().Status; s.Faults != 1 || s.Streams != 0 {
				t.Errorf("recorded as %d faults and %d streams", s.Faults, s.Streams)
			}
			var e *ResponseError
			if !errors.As(err, &e) {
				t.Errorf("%v is no response", err)
			}
			explained(t, err, c.says, c.hint)
		})
	}
}

// TestHandshakeWithCompression: the client has not asked for it.
func TestHandshakeWithCompression(t *testing.T) {
	ofOurKind := func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Sec-WebSocket-Extensions", "permessage-deflate")
		upgrader := websocket.Upgrader{EnableCompression: true}
		if conn, err := upgrader.Upgrade(w, r, nil); err == nil {
			defer conn.Close()
			protocoltest.Drain(conn)
		}
	}
	ofAnother := func(w http.ResponseWriter, r *http.Request) {
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
		for name, value := range map[string]string{"Upgrade": "websocket", "Connection": "Upgrade",
			"Sec-WebSocket-Accept": base64.StdEncoding.EncodeToString(sum[:]), "Sec-WebSocket-Extensions": "permessage-deflate"} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(http.StatusSwitchingProtocols)
	}
	for _, h := range []http.HandlerFunc{ofOurKind, ofAnother} {
		address := protocoltest.Serve(t, h)
		_, err := newTestClient(t, Options{BaseURL: address}).OpenStream(t.Context(), streamAt(address))
		explained(t, err, "an extension that was not asked for: permessage-deflate", "operator")
	}
}

// TestHandshakeWithALongHeader: a response is not read without a bound.
func TestHandshakeWithALongHeader(t *testing.T) {
	address := protocoltest.Listen(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nX-Long: "+strings.Repeat("x", 2*maxOpening))
		_, _ = io.Copy(io.Discard, c)
	})
	client := newTestClient(t, Options{BaseURL: "http://" + address, Timeout: testkit.Timeout})
	_, err := client.OpenStream(t.Context(), streamAt("http://"+address))
	explained(t, err, "longer than 1048576 bytes", "")
}

// TestOpenStreamHasNoBound: only what opens a stream is bounded.
func TestOpenStreamHasNoBound(t *testing.T) {
	const n = 3
	s := openStream(t, func(t *testing.T, conn *websocket.Conn) {
		for range n {
			say(t, conn, `{"type":"error","message":"`+strings.Repeat("x", maxOpening/2)+`"}`)
		}
		closeNormally(t, conn)
	}, nil)
	if events, info := collect(t, s); len(events) != n || info.Code != 1000 {
		t.Errorf("%d of %d events, %+v", len(events), n, info)
	}
}

// TestRedirections: one to the same operation names the new address, as --server needs it; any
// other one may be of a log-in page.
func TestRedirections(t *testing.T) {
	for _, c := range []struct{ base, to, hint string }{
		{"", "https://new.example/v1/test", "--server https://new.example"},
		{"", "/speech/v1/test", "/speech"},
		{"/old", "https://new.example/new/v1/test?key=" + testKey, "--server https://new.example/new"},
		{"", "https://login.example/", "captive portal"},
	} {
		address := protocoltest.Serve(t, http.RedirectHandler(c.to, http.StatusPermanentRedirect))
		_, err := newTestClient(t, Options{BaseURL: address + c.base}).Test(t.Context())
		explained(t, err, "it redirects to http", c.hint)
		if strings.Contains(hint.Of(err), "/v1/test") {
			t.Errorf("%s: %s", c.to, hint.Of(err))
		}
	}
}

// TestStreamAddressOfAnotherHost: the address of the stream is not --server's.
func TestStreamAddressOfAnotherHost(t *testing.T) {
	address, ca := protocoltest.ServeTLS(t, okResponse, nil)
	client := newTestClient(t, Options{BaseURL: address, CACert: ca})
	for _, host := range []string{"no-such-host.invalid", "127.0.0.1:1"} {
		_, err := client.OpenStream(context.Background(), streamAt("https://"+host))
		explained(t, err, "", "--public-url")
	}
	overTLS, _ := protocoltest.ServeTLS(t, okResponse, nil) // with another certificate
	_, err := client.OpenStream(context.Background(), streamAt(overTLS))
	explained(t, err, "certificate", "--ca")
	named, ca := protocoltest.ServeTLS(t, okResponse, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"a.example"} })
	client = newTestClient(t, Options{BaseURL: address, CACert: ca})
	_, err = client.OpenStream(context.Background(), streamAt(named))
	explained(t, err, "issued for a.example", "--public-url")
}

// TestStreamAddressOfAnotherPath: a page at an address that is not below --server.
func TestStreamAddressOfAnotherPath(t *testing.T) {
	address := protocoltest.Serve(t, respond(404, "text/html", "<title>Not found</title>"))
	client := newTestClient(t, Options{BaseURL: address + "/prefix"})
	for path, below := range map[string]bool{"/v1/live": false, "/prefix2/v1/live": false, "/prefix/v1/live": true} {
		_, err := client.OpenStream(t.Context(), "ws"+strings.TrimPrefix(address, "http")+path+"?token=tok-123")
		if err == nil || strings.Contains(hint.Of(err), "--public-url") == below || !strings.Contains(hint.Of(err), "headers Upgrade and Connection") {
			t.Errorf("%s: %v; %s", path, err, hint.Of(err))
		}
	}
}

// TestPlainHTTPToTLS knows the responses of common servers.
func TestPlainHTTPToTLS(t *testing.T) {
	for _, body := range []string{
		`{"requestId":"r","message":"This server requires TLS: its address begins with https"}`,
		"Client sent an HTTP request to an HTTPS server.\n",
		"<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
		"<p>Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
	} {
		client := newTestClient(t, Options{BaseURL: protocoltest.Serve(t, respond(400, "text/html", body))})
		_, err := client.Test(context.Background())
		explained(t, err, "400", "https:// instead of http://")
	}
}

// TestTokenOfAnUnreadableResponse: the response to the creation of a stream has a token.
func TestTokenOfAnUnreadableResponse(t *testing.T) {
	client := clientOf(t, respond(200, "application/json", `{"id":7,"url":"wss://host/s?token=tok-123"}`))
	_, err := client.CreateStream(context.Background(), nil)
	explained(t, err, "wss://host/s", "")
}

func TestStreamAddressesThatAreRefused(t *testing.T) {
	client := newTestClient(t, Options{BaseURL: "https://127.0.0.1:1"})
	for address, says := range map[string]string{
		"ws://127.0.0.1:1/s?token=tok-123":    "without TLS",
		"https://127.0.0.1:1/s?token=tok-123": "is not a stream address",
		"wss:///s?token=tok-123":              "is not a stream address",
		"://tok-123":                          "cannot be parsed",
		"":                                    "is not a stream address",
	} {
		_, err := client.OpenStream(context.Background(), address)
		explained(t, err, says, "--public-url")
	}
}

// The key belongs to the HTTP operations; a stream's address may be another
// host's.
func TestTheKeyStaysOutOfTheStream(t *testing.T) {
	address := protocoltest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.URL.Query().Get("token") != "tok-123" {
			t.Errorf("%v %v", r.URL, r.Header)
		}
		if conn := protocoltest.Upgrade(w, r); conn != nil {
			defer conn.Close()
			protocoltest.CloseWith(conn, 1001, "")
		}
	}))
	client := newTestClient(t, Options{BaseURL: address}) // http: as given, so ws: is, too
	s := testkit.Must(client.OpenStream(context.Background(), streamAt(address)))(t)
	if _, info := collect(t, s); info.Reason != GoingAway {
		t.Errorf("%+v", info)
	}
}
