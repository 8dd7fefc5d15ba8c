package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/gorilla/websocket"

	"hubbub/protocol"
	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
)

// OpenStream opens the address that CreateStream returned. The address works
// once. ctx bounds the opening only: a stream ends by EndOfStream and the
// service's close, or by Close.
//
// A handshake that the service refuses is a *ResponseError.
func (c *Client) OpenStream(ctx context.Context, address string) (*Stream, error) {
	u, err := c.streamURL(address)
	if err != nil {
		return nil, err
	}
	return c.open(ctx, u, http.Header{}, false)
}

// hintWebSocket is for a handshake that something in between has prevented.
const hintWebSocket = "A proxy, load balancer or firewall in between may not support WebSocket: it must forward the headers Upgrade and Connection over HTTP/1.1. Ask its operator, or exclude the service with NO_PROXY."

// open opens a WebSocket, for sending or only for receiving.
func (c *Client) open(ctx context.Context, u *url.URL, head http.Header, receiveOnly bool) (*Stream, error) {
	head.Set("User-Agent", c.userAgent)
	c.redactor.AddQuery(u) // the token
	number := int(c.streams.Add(1))
	traced, exchange := c.tracer.exchange(ctx, http.MethodGet, u, nil, number)
	conn, resp, err := c.dialStream(traced, u, head)
	if err != nil {
		return nil, c.handshakeError(ctx, u, resp, err, exchange, receiveOnly)
	}
	exchange.responded(resp, nil)
	s := newStream(conn, c.config, c.redactor)
	s.trace(c.tracer, number)
	s.receiveOnly = receiveOnly
	s.start()
	return s, nil
}

// Dial opens the address of a stream, with additional headers, and leaves the frames
// to the caller. A response that does not switch to WebSocket is returned without a
// connection and without an error.
func (c *Client) Dial(ctx context.Context, address string, head http.Header) (*websocket.Conn, *http.Response, error) {
	u, err := c.streamURL(address)
	if err != nil {
		return nil, nil, err
	}
	head.Set("User-Agent", c.userAgent)
	conn, resp, err := c.dialStream(ctx, u, head)
	if resp != nil && errors.Is(err, websocket.ErrBadHandshake) {
		return nil, resp, nil
	}
	if err != nil {
		return nil, nil, c.explain(ctx, u, err)
	}
	return conn, resp, nil
}

// dialStream opens a WebSocket. The library observes the end of ctx only up to the request
// of the handshake: closing the connection ends the wait for the response.
func (c *Client) dialStream(ctx context.Context, u *url.URL, head http.Header) (*websocket.Conn, *http.Response, error) {
	conf := c.tls.Clone()
	conf.NextProtos = []string{"http/1.1"} // WebSocket over HTTP/2 is not supported here
	proxy, err := c.proxy(u)
	if err != nil {
		return nil, nil, err
	}
	opened := func() bool { return true }
	var opening *openingConn
	dialer := &websocket.Dialer{
		NetDialContext: func(dialing context.Context, network, address string) (net.Conn, error) {
			peer := address
			if proxy != nil {
				peer = hostPort(proxy)
			}
			conn, err := c.dialer().DialContext(dialing, network, peer)
			switch {
			case err != nil && proxy != nil:
				return nil, unreachable(err)
			case err != nil:
				return nil, err
			}
			opened = context.AfterFunc(ctx, func() {
				if errors.Is(ctx.Err(), context.Canceled) { // a deadline is the library's
					_ = conn.Close()
				}
			})
			opening = &openingConn{conn, maxOpening}
			if proxy == nil {
				return opening, nil
			}
			deadline, _ := dialing.Deadline()
			_ = conn.SetDeadline(deadline)
			return c.tunnel(dialing, opening, proxy, address)
		},
		TLSClientConfig:  conf,
		HandshakeTimeout: c.timeout,
		WriteBufferSize:  protocol.ChunkBytes + 64, // one chunk, one write
	}
	conn, resp, err := dialer.DialContext(ctx, u.String(), head)
	if !opened() && err == nil && ctx.Err() != nil {
		_ = conn.Close()
		return nil, nil, ctx.Err()
	}
	// The library accepts compression of one kind, and its read limit does not bound what a message expands to.
	if resp != nil && resp.StatusCode == http.StatusSwitchingProtocols && resp.Header.Get("Sec-WebSocket-Extensions") != "" {
		if conn != nil {
			_ = conn.Close()
		}
		return nil, nil, hint.Errorf("The service, or a proxy in between, does not implement WebSocket (RFC 6455) correctly: tell its operator.",
			"the service uses an extension that was not asked for: %s", c.clean(resp.Header.Get("Sec-WebSocket-Extensions"), 80))
	}
	if err == nil {
		opening.left = math.MaxInt
	}
	return conn, resp, err
}

// maxOpening bounds what is read until a stream is open, in bytes.
const maxOpening = 1 << 20

// openingConn bounds what is read of a connection: the library, unlike net/http, reads a
// header of any length.
type openingConn struct {
	net.Conn
	left int // bytes
}

func (c *openingConn) Read(p []byte) (n int, err error) {
	if c.left <= 0 {
		return 0, hint.Errorf(hintWrongService, "the response to the handshake is longer than %d bytes", maxOpening)
	}
	n, err = c.Conn.Read(p)
	c.left -= n
	return n, err
}

// NetConn is the connection below.
func (c *openingConn) NetConn() net.Conn { return c.Conn }

// streamURL checks the address of a stream. Its errors do not show the token.
func (c *Client) streamURL(address string) (*url.URL, error) {
	const fix = "It must begin with wss://: tell the operator of the service (hubbub serve: --public-url)."
	u, err := url.Parse(address)
	if err != nil {
		return nil, hint.Errorf(fix, "the service returned a stream address that cannot be parsed")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Hostname() == "" || u.Scheme != "ws" && u.Scheme != "wss":
		return nil, hint.Errorf(fix, "the service returned an address that is not a stream address: it begins with %q", protocol.Clean(u.Scheme+"://"+u.Host, 80))
	case u.Scheme == "ws" && c.base.Scheme == "https":
		return nil, hint.Errorf("Audio is not sent unencrypted to a service reached over TLS; tell its operator (hubbub serve: --public-url).",
			"the service returned a stream address without TLS, ws://%s", protocol.Clean(u.Host, 80))
	}
	u.Fragment = ""
	return u, nil
}

// handshakeError explains why a WebSocket does not open. Before that of a watcher there was no
// request that the service itself has answered.
func (c *Client) handshakeError(ctx context.Context, u *url.URL, resp *http.Response, err error, exchange *exchangeTracer, watching bool) error {
	if resp == nil || !errors.Is(err, websocket.ErrBadHandshake) {
		var op *net.OpError
		var name x509.HostnameError
		step := "" // before there is a connection to the service
		if errors.As(err, &op) && slices.Contains([]string{"dial", "proxyconnect", connectTunnel, socksConnect}, op.Op) {
			step = op.Op
		}
		err = c.explain(ctx, u, err)
		switch {
		case errors.Is(err, context.Canceled):
		case (step == "dial" || errors.As(err, &name)) && hostPort(u) != hostPort(c.base):
			err = hint.Add(err, "The service gave this address for the stream, which differs from --server: tell its operator (hubbub serve: --public-url).")
		case step == "" && !watching && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errno.Is(err, syscall.ECONNRESET) || isTimeout(err)):
			err = hint.Add(err, hintWebSocket)
		}
		exchange.failed(err)
		return err
	}
	defer resp.Body.Close()
	body := make([]byte, maxErrorBody)
	n, _ := resp.Body.Read(body) // gorilla has read all there is into memory
	e := c.responseError(resp, body[:n])
	switch s := e.Status; {
	case s/100 < 3:
		e.Message, e.hint = "this is not a WebSocket", hintWebSocket
		if n > 0 {
			e.Message += ": " + c.clean(excerpt(resp.Header.Get("Content-Type"), body[:n]), maxMessage)
		}
	case s == http.StatusUnauthorized, s == http.StatusForbidden && e.own:
		e.hint = "The stream's token is used, expired or wrong: start again to get a new one."
	case s/100 == 3 && !watching:
		e.hint = "A WebSocket does not follow that, and the request before was not redirected: tell the operator of the service (hubbub serve: --public-url), or of what is in front of it."
	case s/100 == 3, s == http.StatusTooManyRequests, e.RetryAfter > 0, wantsTLS.Match(body[:n]):
	case !e.own, s == http.StatusBadRequest, s == http.StatusMethodNotAllowed, s == http.StatusUpgradeRequired, s == http.StatusNotImplemented:
		e.hint = hintWebSocket
	}
	switch {
	case e.hint != hintWebSocket:
	case watching && !e.own:
		e.hint = hintWrongService + " " + hintWebSocket
	case !watching && !c.below(u):
		e.hint = "The address that the service gave for the stream is not below --server: if it is wrong, tell its operator (hubbub serve: --public-url). " + hintWebSocket
	}
	if e.Status == http.StatusSwitchingProtocols {
		exchange.failed(e)
	} else {
		exchange.responded(resp, body[:n])
	}
	return e
}

// below reports whether the address of a stream is that of the service, or below it.
func (c *Client) below(u *url.URL) bool {
	return hostPort(u) == hostPort(c.base) && strings.HasPrefix(u.Path+"/", c.base.Path+"/")
}

// tlsConfig verifies the server by the authorities of the options, and by those of
// the system unless CACert is given; with Insecure not at all.
func tlsConfig(o Options) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, Time: o.Now, InsecureSkipVerify: o.Insecure} // as the user asked
	if o.Insecure || (o.CAFile == "" && len(o.CACert) == 0) {
		return c, nil
	}
	pool := x509.NewCertPool()
	if len(o.CACert) == 0 {
		// A machine without any authorities can still trust the added ones.
		if system, err := x509.SystemCertPool(); err == nil {
			pool = system
		}
	}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			fix := "--ca takes a file with certificates in PEM format."
			if errors.Is(err, fs.ErrPermission) {
				fix = "Give this user permission to read the file."
			}
			return nil, hint.Errorf(fix, "reading the certificates of --ca: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, hint.Errorf("It must have at least one block that begins with -----BEGIN CERTIFICATE-----.",
				"the file of --ca, %s, holds no certificate in PEM format", protocol.Clean(o.CAFile, 200))
		}
	}
	if len(o.CACert) > 0 && !pool.AppendCertsFromPEM(o.CACert) {
		return nil, errors.New("the certificate of the built-in server is not in PEM format")
	}
	c.RootCAs = pool
	return c, nil
}
