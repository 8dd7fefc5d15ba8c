package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

// An address of a proxy that cannot be used is an error for the addresses that
// would go through it, not a reason to go around it.
func TestProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("no_proxy", "")
	t.Setenv("NO_PROXY", "inside.invalid")
	for value, want := range map[string]string{
		"":                               "",
		"127.0.0.1:1":                    "127.0.0.1:1",
		"http://u:hunter2@127.0.0.1:1":   "127.0.0.1:1",
		"socks5://127.0.0.1":             "127.0.0.1:1080",
		"%zz":                            "error",
		"::::":                           "error",
		":8080":                          "error",
		"two words":                      "error",
		"socks4://u:hunter2@127.0.0.1:1": "error",
	} {
		t.Setenv("HTTPS_PROXY", value)
		for address, proxied := range map[string]bool{"https://service.invalid": true, "https://inside.invalid": false,
			"https://127.0.0.1": false, "http://service.invalid": false} {
			proxy, err := newTestClient(t, Options{BaseURL: address}).Probe()
			got := ""
			switch {
			case err != nil:
				got = "error"
				explained(t, err, "the proxy in HTTPS_PROXY", "NO_PROXY")
			default:
				got = proxy.Proxy
			}
			if proxied && got != want || !proxied && got != "" {
				t.Errorf("HTTPS_PROXY=%q, %s: %s", value, address, got)
			}
		}
	}
	t.Setenv("HTTPS_PROXY", "::::")
	client := newTestClient(t, Options{BaseURL: "https://service.invalid"})
	_, err := client.Test(context.Background())
	explained(t, err, "the proxy in HTTPS_PROXY", "NO_PROXY")
}

// TestProxyWithoutATunnel: an error of a proxy that accepts the connection, and opens no tunnel, names the
// proxy and not the service.
func TestProxyWithoutATunnel(t *testing.T) {
	cert, ca := protocoltest.Certificate(t, nil)
	read := func(c net.Conn, n int64) { _, _ = io.CopyN(io.Discard, c, n) }
	replies := func(n int64, reply string) func(net.Conn) {
		return func(c net.Conn) {
			read(c, n)
			_, _ = io.WriteString(c, reply)
		}
	}
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	socks := func(code string) func(net.Conn) { // RFC 1928: greeting, request for a name
		return func(c net.Conn) {
			read(c, 3)
			_, _ = io.WriteString(c, "\x05\x00")
			read(c, int64(5+len("service.invalid")+2))
			_, _ = io.WriteString(c, "\x05"+code+"\x00\x01\x00\x00\x00\x00\x00\x00")
		}
	}
	for _, c := range []struct {
		scheme     string
		do         func(net.Conn)
		says, hint string
	}{
		{"http", silent, "no response from PROXY within 200ms", "may not reach the service"},
		{"http", func(c net.Conn) { read(c, 16) }, "PROXY ", "may not reach the service"}, // EOF or a reset, by chance
		{"http", replies(16, "\x15\x03\x01\x00\x02\x02\x46 of TLS\r\n\r\n"), "PROXY does not respond in HTTP", "another kind (http://, https://"},
		{"https", func(c net.Conn) { silent(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})) }, "no response from PROXY within 200ms", "may not reach the service"},
		{"socks5", silent, "no response from PROXY within 200ms", "may not reach the service"},
		{"socks5", replies(3, "HTTP/1.1 400 Bad Request"), "unexpected protocol version 72", "another kind (http://, https://"},
		{"socks5", socks("\x05"), "connection refused", "may not reach the service"},
		{"socks5", socks("\x02"), "connection not allowed by ruleset", "may not reach the service"},
		{"socks5", replies(3, "\x05\xff"), "no acceptable authentication methods", "Add its user name and password"},
	} {
		proxy := protocoltest.Listen(t, c.do)
		t.Run(c.scheme+" "+c.says, func(t *testing.T) {
			client := newTestClient(t, Options{BaseURL: "https://service.invalid", CACert: ca, Timeout: 200 * time.Millisecond})
			via := &url.URL{Scheme: c.scheme, Host: proxy}
			client.http.Transport.(*http.Transport).Proxy = http.ProxyURL(via)
			_, requestErr := client.Test(context.Background())
			_, streamErr := client.OpenStream(context.Background(), streamAt("https://service.invalid"))
			errs := []error{requestErr, streamErr}
			if !strings.HasPrefix(c.says, "no response") { // only the caller bounds a probe
				_, err := probeTo(t, client, via)
				errs = append(errs, err)
			}
			for _, err := range errs {
				says := "the proxy " + proxy + " opens no tunnel to service.invalid:443: " + strings.ReplaceAll(c.says, "PROXY", proxy)
				if explained(t, err, says, c.hint); !strings.HasPrefix(fmt.Sprint(err), says) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// TestProxyWithoutTLS: the connection to a proxy that does not speak TLS is closed.
func TestProxyWithoutTLS(t *testing.T) {
	closed := make(chan struct{})
	proxy := protocoltest.Listen(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "SSH-2.0-server\r\n")
		_, _ = io.Copy(io.Discard, c)
		close(closed)
	})
	client := newTestClient(t, Options{BaseURL: "https://service.invalid"})
	client.http.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "https", Host: proxy})
	_, err := client.OpenStream(t.Context(), streamAt("https://service.invalid"))
	explained(t, err, "the proxy cannot be reached: "+proxy+" does not speak TLS", "HTTPS_PROXY")
	select {
	case <-closed:
	case <-time.After(testkit.Timeout):
		t.Error("the connection is still open")
	}
}

// Every kind of proxy carries the requests, the stream, and the steps of a probe.
func TestKindsOfProxies(t *testing.T) {
	address, ca := protocoltest.ServeTLS(t, protocoltest.Service{Stream: func(c *websocket.Conn) { protocoltest.UntilEnd(c) }}.Handler(), nil)
	cert, proxyCA := protocoltest.Certificate(t, nil)
	connect := func(c net.Conn) (io.Reader, string, string) {
		r := bufio.NewReader(c)
		req, err := http.ReadRequest(r)
		if err != nil || req.Method != http.MethodConnect || req.Header.Get("Proxy-Authorization") != "Basic dTpodW50ZXIy" {
			return r, "", "HTTP/1.1 403 Forbidden\r\n\r\n"
		}
		return r, req.Host, "HTTP/1.1 200 OK\r\n\r\n"
	}
	socks := func(c net.Conn) (io.Reader, string, string) { // RFC 1928, without authentication
		b := make([]byte, 4+10) // greeting with two methods; then a request with an IPv4 address
		_, _ = io.ReadFull(c, b[:4])
		_, _ = c.Write([]byte{5, 0})
		if _, err := io.ReadFull(c, b[4:]); err != nil || hex.EncodeToString(b[:12]) != "05020002"+"05010001"+"7f000001" {
			return c, "", "\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00"
		}
		return c, strings.TrimPrefix(address, "https://"), "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	}
	for scheme, accept := range map[string]func(net.Conn) (from io.Reader, to, response string){
		"http": connect, "https": connect, "socks5": socks, "socks5h": socks,
	} {
		proxy := protocoltest.Listen(t, func(c net.Conn) {
			if scheme == "https" {
				c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			from, to, response := accept(c)
			_, _ = io.WriteString(c, response)
			on, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, on); _ = c.Close() }()
			_, _ = io.Copy(on, from)
			_ = on.Close()
		})
		client := newTestClient(t, Options{BaseURL: address, CACert: append(ca[:len(ca):len(ca)], proxyCA...)})
		via := &url.URL{Scheme: scheme, User: url.UserPassword("u", "hunter2"), Host: proxy}
		if info, err := probeTo(t, client, via); err != nil || !info.Verified || !info.NameMatches || info.Version != "TLS 1.3" || info.Issuer != "Test Authority (self-signed)" {
			t.Errorf("%s: %+v, %v", scheme, info, err)
		}
		live, err := client.CreateStream(context.Background(), nil)
		if err != nil {
			t.Errorf("%s: %v", scheme, err)
			continue
		}
		stream, err := client.OpenStream(context.Background(), live.URL)
		if err != nil {
			t.Errorf("%s: %v", scheme, err)
			continue
		}
		if _, ok := stream.tcp().(*net.TCPConn); !ok {
			t.Errorf("%s: no TCP connection below TLS", scheme)
		}
		stream.Close()

		via.Host = "127.0.0.1:1"
		_, requestErr := client.Test(context.Background())
		_, streamErr := client.OpenStream(context.Background(), live.URL)
		for _, err := range []error{requestErr, streamErr} {
			explained(t, err, "the proxy cannot be reached: 127.0.0.1:1 refuses connections", "HTTPS_PROXY")
		}
		if !strings.HasPrefix(fmt.Sprint(streamErr), "the proxy cannot be reached: 127.0.0.1:1 ") {
			t.Errorf("%s: %v", scheme, streamErr)
		}
	}
}
