package client

import (
	"bufio"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// tunnels is a proxy that responds to CONNECT with a status, and for 200 connects.
func tunnels(t *testing.T, status string) (address *url.URL, asked func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	var mu sync.Mutex
	var seen string
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				mu.Lock()
				seen = req.Method + " " + req.Host + " " + req.Header.Get("Proxy-Authorization")
				mu.Unlock()
				_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\n\r\n")
				if !strings.HasPrefix(status, "200") {
					return
				}
				on, err := net.Dial("tcp", req.Host)
				if err != nil {
					return
				}
				served.Go(func() { _, _ = io.Copy(conn, on); conn.Close() })
				_, _ = io.Copy(on, conn)
				on.Close()
			})
		}
	})
	t.Cleanup(func() { l.Close(); served.Wait() })
	return &url.URL{Scheme: "http", User: url.UserPassword("u", "hidden"), Host: l.Addr().String()},
		func() string { mu.Lock(); defer mu.Unlock(); return seen }
}

// probeTo dials and does the handshake.
func probeTo(t *testing.T, c *Client, proxy *url.URL) (TLSInfo, error) {
	t.Helper()
	if proxy != nil {
		c.http.Transport.(*http.Transport).Proxy = http.ProxyURL(proxy)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
	defer cancel()
	p, err := c.Probe()
	testkit.NoError(t, err)
	defer p.Close()
	if strings.Contains(p.Proxy, "hidden") {
		t.Error("the proxy's password is shown")
	}
	if _, err := p.LookUp(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Dial(ctx); err != nil {
		t.Fatal(err)
	}
	return p.TLS(ctx)
}

func TestProbeThroughAProxy(t *testing.T) {
	address, ca := protocoltest.ServeTLS(t, http.NotFoundHandler(), nil)
	proxy, asked := tunnels(t, "200 Connection established")
	c := newTestClient(t, Options{BaseURL: address, CACert: ca})
	info, err := probeTo(t, c, proxy)
	if err != nil || !info.Verified || !info.NameMatches || info.Version != "TLS 1.3" || !strings.Contains(info.Issuer, "Test Authority (self-signed)") {
		t.Errorf("%+v, %v", info, err)
	}
	if want := "CONNECT " + strings.TrimPrefix(address, "https://") + " Basic dTpoaWRkZW4="; asked() != want {
		t.Errorf("asked %q, want %q", asked(), want)
	}
	for status, want := range map[string]string{"407 Nobody": "requires a user name and password", "407 No": "does not accept the user name and password",
		"403 Forbidden": "no tunnel to"} {
		proxy, _ := tunnels(t, status)
		if status == "407 Nobody" {
			proxy.User = nil
		}
		c := newTestClient(t, Options{BaseURL: address, CACert: ca})
		_, err := probeTo(t, c, proxy)
		c.http.Transport.(*http.Transport).Proxy = http.ProxyURL(proxy)
		_, requestErr := c.Test(t.Context())
		for _, err := range []error{err, requestErr} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(hint.Of(err), "_PROXY") || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: %v; %s", status, err, hint.Of(err))
			}
		}
	}
}

// A certificate that is not good is refused and seen all the same.
func TestProbeTLS(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*x509.Certificate)
		want   string
		match  bool
	}{
		"expired":    {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "expired on", true},
		"not yet":    {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }, "not valid before", true},
		"wrong name": {func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} }, "issued for other.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			address, ca := protocoltest.ServeTLS(t, http.NotFoundHandler(), tt.change)
			info, err := probeTo(t, newTestClient(t, Options{BaseURL: address, CACert: ca}), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || hint.Of(err) == "" {
				t.Errorf("%v", err)
			}
			if info.Verified || info.NameMatches != tt.match || info.Issuer == "" || info.NotAfter.IsZero() {
				t.Errorf("%+v", info)
			}
			info, err = probeTo(t, newTestClient(t, Options{BaseURL: address, Insecure: true}), nil)
			if err != nil || info.Verified {
				t.Errorf("insecure: %+v, %v", info, err)
			}
		})
	}
	if _, err := probeTo(t, newTestClient(t, Options{BaseURL: plainServer(t)}), nil); !errors.Is(err, ErrNoTLS) {
		t.Errorf("%v", err)
	}
}

// plainServer accepts connections and says nothing.
func plainServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

func TestSkew(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if _, known := (ResponseInfo{}).Skew(now); known {
		t.Error("no Date, and yet known")
	}
	got, known := ResponseInfo{Date: now.Add(-time.Minute), Took: time.Second}.Skew(now)
	if !known || got != 59*time.Second {
		t.Errorf("%v %v", got, known)
	}
}

// Names of certificates are short: three names, and an issuer with its organisation
// unless that is its name.
func TestNamesOfCertificates(t *testing.T) {
	for want, c := range map[string]x509.Certificate{
		"no name":               {},
		"a.example, 192.0.2.7":  {DNSNames: []string{"a.example"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)}},
		"a, b, c and 2 more":    {DNSNames: []string{"a", "b", "c", "d", "e"}},
		"a[2J, b, c and 1 more": {DNSNames: []string{"a\x1b[2J", "b", "c"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)}},
	} {
		if got := certificateNames(&c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	subject := pkix.Name{CommonName: "diarization.example"}
	for want, issuer := range map[string]pkix.Name{
		"R11, Some Authority":               {CommonName: "R11", Organization: []string{"Some Authority", "of somewhere"}},
		"Some Authority":                    {Organization: []string{"Some Authority"}},
		"Authority":                         {CommonName: "Authority", Organization: []string{"Authority"}},
		"no name":                           {},
		"diarization.example (self-signed)": subject,
	} {
		if got := issuerName(&x509.Certificate{Subject: subject, Issuer: issuer}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The probe connects to the port that requests use.
func TestPortsOfProxies(t *testing.T) {
	for address, want := range map[string]string{
		"http://proxy": "proxy:80", "https://proxy": "proxy:443", "socks5://proxy": "proxy:1080", "socks5h://proxy": "proxy:1080",
		"socks5://proxy:9050": "proxy:9050", "wss://host/x": "host:443", "ws://host": "host:80",
	} {
		u, err := url.Parse(address)
		testkit.NoError(t, err)
		if got := hostPort(u); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
