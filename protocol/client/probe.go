package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// Probe performs the steps of a request one by one, so that each can be examined
// separately: LookUp, then Dial, then TLS, then Client.TestOnce. It has a
// connection of its own.
type Probe struct {
	client *Client
	// Proxy is the host and port of the proxy that the environment sets for
	// requests; "" = none.
	Proxy string

	proxy *url.URL
	conn  net.Conn
}

// Probe returns a new Probe. Close ends it.
func (c *Client) Probe() (*Probe, error) {
	p := &Probe{client: c}
	proxy, err := c.proxy(c.base)
	if err != nil {
		return nil, explainNetwork(context.Background(), c.base, c.timeout, err)
	}
	if proxy != nil {
		p.proxy, p.Proxy = proxy, hostPort(proxy)
	}
	return p, nil
}

// Close closes the connection, if there is one.
func (p *Probe) Close() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

// peer is the end of the connection: the proxy, or else the service.
func (p *Probe) peer() *url.URL {
	if p.proxy != nil {
		return p.proxy
	}
	return p.client.base
}

func (p *Probe) explain(ctx context.Context, err error) error {
	err = explainNetwork(ctx, p.peer(), p.client.timeout, err)
	if p.proxy != nil {
		return proxyUnreachable(err)
	}
	return err
}

// Host is the name that LookUp resolves.
func (p *Probe) Host() string { return protocol.Clean(p.peer().Hostname(), 253) }

// LookUp returns the addresses of the host. A host that is an address is returned
// as it is.
func (p *Probe) LookUp(ctx context.Context) ([]string, error) {
	addresses, err := net.DefaultResolver.LookupHost(ctx, p.peer().Hostname())
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	return addresses, nil
}

// Dial opens the connection and returns the remote address.
func (p *Probe) Dial(ctx context.Context) (string, error) {
	conn, err := p.client.dialer().DialContext(ctx, "tcp", hostPort(p.peer()))
	if err != nil {
		return "", p.explain(ctx, err)
	}
	p.conn = conn
	return conn.RemoteAddr().String(), nil
}

// TLSInfo is the result of a TLS handshake.
type TLSInfo struct {
	Version  string // such as "TLS 1.3"
	Issuer   string // of the server's own certificate
	Subject  string // the names that it is issued for
	NotAfter time.Time
	// NameMatches says that it is issued for the host of the address.
	NameMatches bool
	// Verified says that its verification succeeded.
	Verified bool
}

// ErrNoTLS is the error of Probe.TLS for a connection without TLS.
var ErrNoTLS = errors.New("the connection has no TLS")

// TLS does the handshake over the connection of Dial, and verifies the
// certificate as requests do. A certificate that is not accepted is returned with
// the error. With Options.Insecure, the result of the verification is only in
// Verified.
func (p *Probe) TLS(ctx context.Context) (TLSInfo, error) {
	base := p.client.base
	if base.Scheme != "https" {
		return TLSInfo{}, ErrNoTLS
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = p.conn.SetDeadline(deadline)
	}
	if p.proxy != nil {
		var err error
		if p.conn, err = p.client.tunnel(ctx, p.conn, p.proxy, hostPort(base)); err != nil {
			return TLSInfo{}, p.client.explain(ctx, base, err)
		}
	}
	conf := p.client.tls.Clone()
	conf.InsecureSkipVerify = true // verified below: a certificate that is not accepted is returned as well
	conf.ServerName = base.Hostname()
	conn := tls.Client(p.conn, conf)
	if err := conn.HandshakeContext(ctx); err != nil {
		return TLSInfo{}, explainNetwork(ctx, base, p.client.timeout, err)
	}
	state := conn.ConnectionState()
	info := TLSInfo{Version: tls.VersionName(state.Version)}
	if len(state.PeerCertificates) == 0 {
		return info, hint.Errorf("Check the port in --server.", "%s presents no certificate", hostPort(base))
	}
	leaf := state.PeerCertificates[0]
	info.Issuer, info.Subject, info.NotAfter = issuerName(leaf), certificateNames(leaf), leaf.NotAfter
	info.NameMatches = leaf.VerifyHostname(base.Hostname()) == nil
	options := x509.VerifyOptions{Roots: conf.RootCAs, Intermediates: x509.NewCertPool(), DNSName: base.Hostname()}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := leaf.Verify(options)
	info.Verified = err == nil
	if err != nil && !p.client.tls.InsecureSkipVerify {
		return info, explainNetwork(ctx, base, p.client.timeout, &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err})
	}
	return info, nil
}

func issuerName(c *x509.Certificate) string {
	name := c.Issuer.CommonName
	if len(c.Issuer.Organization) > 0 && c.Issuer.Organization[0] != name {
		if name != "" {
			name += ", "
		}
		name += c.Issuer.Organization[0]
	}
	name = cmp.Or(name, "no name")
	if c.CheckSignatureFrom(c) == nil || selfIssued(c) {
		name += " (self-signed)"
	}
	return protocol.Clean(name, 120)
}

// ResponseInfo is what is known of a response besides its body.
type ResponseInfo struct {
	Status int
	Proto  string        // such as "HTTP/2.0"
	Took   time.Duration // from the request to the header of the response
	Date   time.Time     // of the service's clock; zero = not given
	Via    string        // proxies that the header names
	Type   string        // Content-Type
}

// Skew is how far this machine's clock is ahead of the service's when the
// response was received, and whether that is known. The header counts seconds.
func (i ResponseInfo) Skew(received time.Time) (time.Duration, bool) {
	if i.Date.IsZero() {
		return 0, false
	}
	return received.Add(-i.Took / 2).Sub(i.Date.Add(time.Second / 2)), true
}

func responseInfo(resp *http.Response, took time.Duration) ResponseInfo {
	i := ResponseInfo{Status: resp.StatusCode, Proto: resp.Proto, Took: took,
		Via: protocol.Clean(resp.Header.Get("Via"), 80), Type: protocol.Clean(resp.Header.Get("Content-Type"), 80)}
	i.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	return i
}

// TestOnce checks that the service responds and accepts the API key, without a retry.
func (c *Client) TestOnce(ctx context.Context) (protocol.TestResponse, ResponseInfo, error) {
	var out protocol.TestResponse
	info, err := c.once(ctx, http.MethodGet, "/v1/test", nil, &out)
	if err == nil && out.Status == "" {
		err = hint.Errorf(hintWrongService, "the response to GET /v1/test is JSON, but not the service's: it has no status")
	}
	return out, info, err
}

// String describes the handshake in one line.
func (i TLSInfo) String() string {
	return fmt.Sprintf("%s, certificate for %s by %s", i.Version, i.Subject, i.Issuer)
}
