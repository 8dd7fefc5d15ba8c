package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"hubbub/protocol/testkit"
)

func hosts(t *testing.T, list ...string) Hosts {
	t.Helper()
	return testkit.Must(ParseHosts(list))(t)
}

func TestPrivateAddressesAreNotPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.1.2.3": false, "172.16.0.1": false, "172.32.0.1": true, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::7f00:1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fd00::1": false, "ff02::1": false, "64:ff9b::7f00:1": false, "64:ff9b:1::808:808": false, "2002:7f00:1::": false, "2001:0:1::": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("public(%s) = %v", text, got)
		}
	}
}

func TestPolicyAllowsOnlyItsHosts(t *testing.T) {
	some := hosts(t, "a.example", "*.b.example", "10.0.0.0/8", "localhost")
	fetch, hook := Policy{Hosts: some}, Policy{Hosts: some, Others: true, Private: true}
	for _, c := range []struct {
		address     string
		fetch, hook bool
	}{
		{"https://a.example/x", true, true},
		{"http://A.Example./x", true, true},
		{"http://x.b.example/x", true, true},
		{"http://b.example/x", false, false},
		{"https://b.example/x", false, true},
		{"https://a.example.evil.test/x", false, true},
		{"http://10.1.2.3/x", true, true},
		{"https://192.168.1.1/x", false, false},
		{"https://8.8.8.8/x", false, true},
		{"http://127.0.0.1/x", true, true}, // localhost
		{"http://localhost/x", true, true},
		{"https://2130706433/x", false, false},
		{"https://[::ffff:192.168.0.1]/x", false, false},
		{"https://[fe80::1%25eth0]/x", false, false},
		{"http://2130706433/x", false, false},
		{"http://0x7f.1/x", false, false},
		{"ftp://a.example/x", false, false},
		{"https://u:p@a.example/x", false, false},
	} {
		u := testkit.Must(url.Parse(c.address))(t)
		if err := fetch.Check(u); (err == nil) != c.fetch {
			t.Errorf("fetch %s: %v", c.address, err)
		}
		if err := hook.Check(u); (err == nil) != c.hook {
			t.Errorf("webhook %s: %v", c.address, err)
		}
	}
	fetch.Hosts = hosts(t, "a.example") // and not this machine
	testkit.NoError(t, fetch.Check(&url.URL{Scheme: "http", Host: "a.example"}))
	// What is not named is refused without a look-up.
	hook.Hosts = hosts(t, "*")
	for _, address := range []string{"https://localhost/x", "https://LocalHost.:8443/x", "https://127.1/x"} {
		u := testkit.Must(url.Parse(address))(t)
		if err := hook.Check(u); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, loopback := range []string{"127.0.0.1", "::1"} { // one of the addresses of localhost is enough
		hook.Hosts = hosts(t, "*", loopback)
		testkit.NoError(t, hook.Check(&url.URL{Scheme: "http", Host: "localhost:8080"}))
	}
	// A named host is one as well beside the * that names all public ones.
	hook.Hosts = hosts(t, "*", "a.example", "*.b.example")
	for host, want := range map[string]bool{"a.example": true, "x.b.example": true, "c.example": false} {
		if err := hook.checkIP(host, netip.MustParseAddr("10.1.2.3")); (err == nil) != want {
			t.Errorf("%s at a private address: %v", host, err)
		}
	}
	for _, bad := range []string{"", "a b", "http://a", "10.0.0.0/99", "2130706433", "a.example:80"} {
		if _, err := ParseHosts([]string{bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestRedirectsAreChecked follows a redirect to an allowed address, which does not get the
// address before, and none to another one.
func TestRedirectsAreChecked(t *testing.T) {
	var secret atomic.Int64
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { secret.Add(1) }))
	defer inner.Close()
	_, port, _ := net.SplitHostPort(inner.Listener.Addr().String())
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/again":
			http.Redirect(w, r, "/here", http.StatusFound)
		case "/here":
			_, _ = io.WriteString(w, "audio"+r.Header.Get("Referer"))
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default: // other notations of the loopback address
			http.Redirect(w, r, "http://"+r.URL.Query().Get("host")+":"+port+"/", http.StatusFound)
		}
	}))
	defer outer.Close()
	p := Policy{Hosts: hosts(t, "127.0.0.1")}
	res := testkit.Must(p.Get(t.Context(), outer.URL+"/again?token=secret"))(t)
	if body, _ := io.ReadAll(res.Body); string(body) != "audio" {
		t.Errorf("%q", body)
	}
	_ = res.Body.Close()
	for _, path := range []string{"/loop", "/?host=localhost", "/?host=[::1]", "/?host=2130706433", "/?host=127.1", "/?host=127.0.0.2", "/?host=0.0.0.0"} {
		if res, err := p.Get(t.Context(), outer.URL+path); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v %v", path, res, err)
		}
	}
	if n := secret.Load(); n > 0 {
		t.Errorf("the private server was called %d times", n)
	}
}

// TestChangingAnswers resolves a name to a public address first and to a private
// one when it is connected to.
func TestChangingAnswers(t *testing.T) {
	var called atomic.Int64
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	defer inner.Close()
	_, port, _ := net.SplitHostPort(inner.Listener.Addr().String())
	resolver := nameServer(t, [4]byte{127, 0, 0, 1})
	address := "http://changing.example:" + port + "/"
	p := Policy{Hosts: hosts(t, "changing.example"), resolver: resolver}
	if res, err := p.Get(t.Context(), address); !errors.Is(err, ErrRefused) || called.Load() > 0 {
		t.Errorf("%v %v", res, err)
	}
	p.Private = true // as for webhooks
	res, err := p.Get(t.Context(), address)
	if err != nil || called.Load() != 1 {
		t.Fatalf("a named host: %v", err)
	}
	_ = res.Body.Close()
}

// nameServer is a resolver that answers every name with an address.
func nameServer(t *testing.T, ip [4]byte) *net.Resolver {
	t.Helper()
	conn := testkit.Must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: ip}}}
			}
			if raw, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(raw, from)
			}
		}
	}()
	var d net.Dialer
	at := conn.LocalAddr().String()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "udp", at) }}
}

// TestReason: what a client or the log is told has no secrets of an address, and no address
// of this network.
func TestReason(t *testing.T) {
	resolver := &net.DNSError{Err: "no such host", Name: "example.com", Server: "10.255.255.53:53"}
	for want, err := range map[string]error{
		"example.com: no such host":                             &url.Error{Op: "Post", URL: "https://example.com/?token=secret", Err: &net.OpError{Op: "dial", Net: "tcp", Err: resolver}},
		"connection refused":                                    &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, Err: errors.New("connection refused")},
		"the connection ended before the response was complete": &url.Error{Op: "Get", URL: "https://example.com", Err: io.EOF},
		"else": errors.New("else"),
	} {
		testkit.Equal(t, Reason(err).Error(), want, err, "is shown as")
	}
	p := Policy{Hosts: hosts(t, "*"), resolver: nameServer(t, [4]byte{10, 0, 0, 1})}
	_, err := p.Get(t.Context(), "http://inside.example:1/?token=secret")
	if err == nil || !errors.Is(err, ErrRefused) || Reason(err).Error() != "the address is not allowed: inside.example is at a private address, which the operator has not named" {
		t.Errorf("%v", err)
	}
}
