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
	"testing"
	"time"

	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// probeTo dials and does the handshake.
func probeTo(t *testing.T, c *Client, proxy *url.URL) (TLSInfo, error) {
	t.Helper()
	if proxy != nil {
		c.http.Transport.(*http.Transport).Proxy = http.ProxyURL(proxy)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Timeout)
	defer cancel()
	p := testkit.Must(c.Probe())(t)
	defer p.Close()
	if strings.Contains(p.Proxy, "hunter2") {
		t.Error("the proxy's password is shown")
	}
	testkit.Must(p.LookUp(ctx))(t)
	testkit.Must(p.Dial(ctx))(t)
	return p.TLS(ctx)
}

// A proxy that opens no tunnel says why, to a probe and to a request.
func TestProxyThatRefuses(t *testing.T) {
	for status, want := range map[string][2]string{
		"407 Nobody":      {"requires a user name and password", "HTTPS_PROXY"},
		"407 No":          {"does not accept the user name and password", "HTTPS_PROXY"},
		"403 Forbidden":   {"no tunnel to service.invalid:443", "to allow CONNECT to this host and port, or exclude the service with NO_PROXY"},
		"502 Bad Gateway": {"no tunnel to service.invalid:443", "may not reach the service"},
	} {
		proxy := &url.URL{Scheme: "http", User: url.UserPassword("u", "hunter2"), Host: protocoltest.Listen(t, func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\n\r\n")
			}
		})}
		if status == "407 Nobody" {
			proxy.User = nil
		}
		c := newTestClient(t, Options{BaseURL: "https://service.invalid"})
		_, err := probeTo(t, c, proxy)
		_, requestErr := c.Test(t.Context())
		for _, err := range []error{err, requestErr} {
			explained(t, err, want[0], want[1])
		}
	}
}

func TestProbeWithoutTLS(t *testing.T) {
	if _, err := probeTo(t, newTestClient(t, Options{BaseURL: "http://" + protocoltest.Listen(t, func(net.Conn) {})}), nil); !errors.Is(err, ErrNoTLS) {
		t.Errorf("%v", err)
	}
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
		testkit.Equal(t, certificateNames(&c), want)
	}
	subject := pkix.Name{CommonName: "diarization.example"}
	for want, issuer := range map[string]pkix.Name{
		"R11, Some Authority":               {CommonName: "R11", Organization: []string{"Some Authority", "of somewhere"}},
		"Some Authority":                    {Organization: []string{"Some Authority"}},
		"Authority":                         {CommonName: "Authority", Organization: []string{"Authority"}},
		"no name":                           {},
		"diarization.example (self-signed)": subject,
	} {
		testkit.Equal(t, issuerName(&x509.Certificate{Subject: subject, Issuer: issuer}), want)
	}
}

// The probe connects to the port that requests use.
func TestPortsOfProxies(t *testing.T) {
	for address, want := range map[string]string{
		"http://proxy": "proxy:80", "https://proxy": "proxy:443", "socks5://proxy": "proxy:1080", "socks5h://proxy": "proxy:1080",
		"socks5://proxy:9050": "proxy:9050", "wss://host/x": "host:443", "ws://host": "host:80",
	} {
		u := testkit.Must(url.Parse(address))(t)
		testkit.Equal(t, hostPort(u), want, address)
	}
}
