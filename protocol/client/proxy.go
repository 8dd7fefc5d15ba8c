package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"

	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// proxy is the proxy for the address u; nil = none.
func (c *Client) proxy(u *url.URL) (*url.URL, error) {
	at := *u
	at.Scheme = strings.Replace(u.Scheme, "ws", "http", 1)
	return c.http.Transport.(*http.Transport).Proxy(&http.Request{URL: &at})
}

// proxyOfEnvironment is the proxy that the environment sets for a request; nil =
// none. The package ignores an address that cannot be parsed, and the request
// would then go around the proxy: here it is an error.
func proxyOfEnvironment(r *http.Request) (*url.URL, error) {
	env := httpproxy.FromEnvironment()
	proxy, err := env.ProxyFunc()(r.URL)
	for _, address := range []*string{&env.HTTPSProxy, &env.HTTPProxy} {
		if *address != "" {
			*address = "http://proxy.invalid"
		}
	}
	set, _ := env.ProxyFunc()(r.URL)
	switch {
	case err != nil || set == nil:
		return nil, err
	case proxy != nil && proxy.Hostname() != "":
		switch proxy.Scheme {
		case "http", "https", "socks5", "socks5h":
			return proxy, nil
		}
	}
	return nil, hint.Errorf("Write it as http://HOST:PORT, or exclude the service with NO_PROXY.",
		"the address of the proxy in %s_PROXY is not valid", strings.ToUpper(r.URL.Scheme)) // it may contain a password
}

// proxyUnreachable attributes an error of the connection to the proxy.
func proxyUnreachable(err error) error {
	return hint.Errorf("The environment sets this proxy in HTTPS_PROXY or HTTP_PROXY: correct its address, or exclude the service with NO_PROXY.",
		"the proxy cannot be reached: %w", err)
}

// tunnel makes a connection to a proxy one to target, a host and port. After an
// error the connection is closed.
func (c *Client) tunnel(ctx context.Context, conn net.Conn, via *url.URL, target string) (through net.Conn, err error) {
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	password, _ := via.User.Password()
	switch via.Scheme {
	case "socks5", "socks5h":
		var auth *proxy.Auth
		if via.User != nil {
			auth = &proxy.Auth{User: via.User.Username(), Password: password}
		}
		dialer, err := proxy.SOCKS5("tcp", hostPort(via), auth, connected{conn})
		if err == nil {
			_, err = dialer.(proxy.ContextDialer).DialContext(ctx, "tcp", target)
		}
		return conn, err // marked as net/http does: socksConnect
	case "https":
		conf := c.tls.Clone()
		conf.ServerName = via.Hostname()
		secure := tls.Client(conn, conf)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, unreachable(err)
		}
		conn = secure
	}
	// RFC 9110, 9.3.6
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if via.User != nil {
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(via.User.Username()+":"+password)))
	}
	var resp *http.Response
	if err = req.Write(conn); err == nil {
		resp, err = http.ReadResponse(bufio.NewReader(conn), req)
	}
	if err == nil {
		err = tunnelRefused(via, target, resp)
	}
	if err != nil {
		return nil, tunnelError(err)
	}
	return conn, nil
}

// The operations of errors between the connection to a proxy and its tunnel.
const (
	connectTunnel = "connect tunnel"
	socksConnect  = "socks connect" // of both SOCKS libraries
)

// tunnelError marks an error of a proxy that was reached and has opened no tunnel.
func tunnelError(err error) error { return &net.OpError{Op: connectTunnel, Net: "tcp", Err: err} }

// noTunnel explains an error of the proxy that was reached: nothing of the service is known then.
func (c *Client) noTunnel(ctx context.Context, via *url.URL, target string, op *net.OpError) error {
	text, fix := explainNetwork(ctx, via, c.timeout, op.Err).Error(), hintTunnel
	if op.Op == socksConnect && !isTimeout(op.Err) {
		var reply bool
		text, reply = strings.CutPrefix(lastCause(op.Err), "unknown error ") // the library's words for any reply of the proxy
		switch {
		case reply:
			fix = hintUnreached
		case strings.Contains(text, "authentication"):
			fix = hintCredentials(via)
		}
	}
	return hint.Add(&networkError{fmt.Sprintf("the proxy %s opens no tunnel to %s: %s", hostPort(via), target, text), op}, fix)
}

const (
	hintTunnel    = "The proxy may not reach the service, or be of another kind (http://, https://, socks5://): check --server and the proxy in HTTPS_PROXY or HTTP_PROXY, or exclude the service with NO_PROXY."
	hintUnreached = "The proxy may not reach the service: check address and port (--server), or exclude the service with NO_PROXY."
)

// hintCredentials is for a proxy that does not accept the user name and password, or their absence.
func hintCredentials(via *url.URL) string {
	if via.User == nil {
		return "Add its user name and password to HTTPS_PROXY."
	}
	return "Correct them in HTTPS_PROXY; characters such as @ are written in percent-encoding."
}

// unreachable marks an error of the connection to a proxy as net/http does.
func unreachable(err error) error { return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err} }

// connected is a dialer that has its connection.
type connected struct{ conn net.Conn }

func (c connected) Dial(_, _ string) (net.Conn, error) { return c.conn, nil }

// tunnelRefused reads the response of a proxy to CONNECT; nil = there is a tunnel.
func tunnelRefused(via *url.URL, target string, resp *http.Response) error {
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case resp.StatusCode == http.StatusProxyAuthRequired, resp.StatusCode == http.StatusUnauthorized: // tinyproxy returns 401 for wrong ones
		wants := "requires a"
		if via.User != nil {
			wants = "does not accept the"
		}
		return hint.Errorf(hintCredentials(via), "the proxy %s %s user name and password (%d)", hostPort(via), wants, resp.StatusCode)
	}
	fix := "Ask the operator of the proxy to allow CONNECT to this host and port, or exclude the service with NO_PROXY."
	if resp.StatusCode >= 500 {
		fix = hintUnreached
	}
	return hint.Errorf(fix, "the proxy %s opens no tunnel to %s: it returned %d %s", hostPort(via), protocol.Clean(target, 260), resp.StatusCode, http.StatusText(resp.StatusCode))
}
