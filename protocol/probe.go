package protocol

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A Probe goes the way of a request step by step, so that each step can be
// looked at by itself: LookUp, then Dial, then TLS, then TestOnce. Its
// connection is its own; the client's requests make theirs.
type Probe struct {
	client *Client
	// Proxy is the proxy of the environment that requests go through, as
	// host and port; "" for none.
	Proxy string

	proxy *url.URL
	conn  net.Conn
}

// Probe begins one. Close ends it.
func (c *Client) Probe() (*Probe, error) {
	p := &Probe{client: c}
	if t, ok := c.http.Transport.(*http.Transport); ok && t.Proxy != nil {
		proxy, err := t.Proxy(&http.Request{URL: c.base})
		if err != nil { // its text may hold the password of the proxy
			return nil, withHint("check HTTPS_PROXY, HTTP_PROXY and NO_PROXY", "the address of the proxy cannot be read")
		}
		if proxy != nil {
			p.proxy, p.Proxy = proxy, hostPort(proxy)
		}
	}
	return p, nil
}

// Close ends the connection, where there is one.
func (p *Probe) Close() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

// first is where the connection goes: to the service, or to the proxy.
func (p *Probe) first() *url.URL {
	if p.proxy != nil {
		return p.proxy
	}
	return p.client.base
}

// Host is the name that LookUp asks for.
func (p *Probe) Host() string { return Clean(p.first().Hostname(), 253) }

// LookUp asks for the addresses of the host. A host that is an address is its
// own answer.
func (p *Probe) LookUp(ctx context.Context) ([]string, error) {
	addresses, err := net.DefaultResolver.LookupHost(ctx, p.first().Hostname())
	if err != nil {
		return nil, explain(ctx, p.first(), p.client.timeout, err)
	}
	return addresses, nil
}

// Dial opens the connection and returns the address that answered.
func (p *Probe) Dial(ctx context.Context) (string, error) {
	conn, err := p.client.dialer().DialContext(ctx, "tcp", hostPort(p.first()))
	if err != nil {
		return "", explain(ctx, p.first(), p.client.timeout, err)
	}
	p.conn = conn
	return conn.RemoteAddr().String(), nil
}

// TLSInfo is what a TLS handshake showed.
type TLSInfo struct {
	Version  string // such as "TLS 1.3"
	Issuer   string // of the server's own certificate
	Subject  string // the names that it is made out to
	NotAfter time.Time
	// NameMatches says that it is made out to the host of the address.
	NameMatches bool
	// Verified says that it was checked and found good.
	Verified bool
}

// ErrNoTLS is the error of Probe.TLS where there is nothing to look at.
var ErrNoTLS = errors.New("no TLS here")

// TLS does the handshake over the connection of Dial, and checks the
// certificate as requests do. What was seen comes with the error, where it was
// the certificate. With Insecure the outcome of the check is in Verified only.
func (p *Probe) TLS(ctx context.Context) (TLSInfo, error) {
	base := p.client.base
	if base.Scheme != "https" {
		return TLSInfo{}, ErrNoTLS
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = p.conn.SetDeadline(deadline)
	}
	if p.proxy != nil {
		if p.proxy.Scheme != "http" {
			return TLSInfo{}, ErrNoTLS
		}
		if err := p.tunnel(ctx); err != nil {
			return TLSInfo{}, err
		}
	}
	conf := p.client.tls.Clone()
	conf.InsecureSkipVerify = true // checked below: a certificate that is refused is to be seen, too
	conf.ServerName = base.Hostname()
	conn := tls.Client(p.conn, conf)
	if err := conn.HandshakeContext(ctx); err != nil {
		return TLSInfo{}, explain(ctx, base, p.client.timeout, err)
	}
	state := conn.ConnectionState()
	info := TLSInfo{Version: tls.VersionName(state.Version)}
	if len(state.PeerCertificates) == 0 {
		return info, withHint("check the port in --server", "%s shows no certificate", hostPort(base))
	}
	leaf := state.PeerCertificates[0]
	info.Issuer, info.Subject, info.NotAfter = issuer(leaf), madeOutTo(leaf), leaf.NotAfter
	info.NameMatches = leaf.VerifyHostname(base.Hostname()) == nil
	options := x509.VerifyOptions{Roots: conf.RootCAs, Intermediates: x509.NewCertPool(), DNSName: base.Hostname()}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := leaf.Verify(options)
	info.Verified = err == nil
	if err != nil && !p.client.tls.InsecureSkipVerify {
		return info, explain(ctx, base, p.client.timeout, &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err})
	}
	return info, nil
}

// tunnel asks the proxy for a way to the service (RFC 9110, 9.3.6).
func (p *Probe) tunnel(ctx context.Context) error {
	target := hostPort(p.client.base)
	req := (&http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}).WithContext(ctx)
	if u := p.proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(p.conn); err != nil {
		return explain(ctx, p.proxy, p.client.timeout, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(p.conn), req)
	if err != nil {
		return explain(ctx, p.proxy, p.client.timeout, err)
	}
	_ = resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		return withHint("write its user name and password into HTTPS_PROXY", "the proxy %s wants a user name and password (407)", p.Proxy)
	case resp.StatusCode/100 != 2:
		return withHint("ask the proxy's operator to allow it, or except the service with NO_PROXY",
			"the proxy %s gives no way to %s: it answered %d %s", p.Proxy, target, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}

func issuer(c *x509.Certificate) string {
	name := c.Issuer.CommonName
	if len(c.Issuer.Organization) > 0 && c.Issuer.Organization[0] != name {
		if name != "" {
			name += ", "
		}
		name += c.Issuer.Organization[0]
	}
	if name == "" {
		name = "no name"
	}
	if c.CheckSignatureFrom(c) == nil || c.Issuer.String() == c.Subject.String() {
		name += " (self-signed)"
	}
	return Clean(name, 120)
}

// Answer is what a request showed beside its body.
type Answer struct {
	Status   int
	Proto    string        // such as "HTTP/2.0"
	Took     time.Duration // from the request to the head of the answer
	Date     time.Time     // of the service's clock; zero where it did not say
	Location string        // host of a redirection; "" without one
	Via      string        // proxies that named themselves
	Type     string        // Content-Type
}

// Skew is how far this machine's clock is ahead of the service's at the time
// that the answer came, and whether that is known. The header counts seconds.
func (a Answer) Skew(received time.Time) (time.Duration, bool) {
	if a.Date.IsZero() {
		return 0, false
	}
	return received.Add(-a.Took / 2).Sub(a.Date.Add(time.Second / 2)), true
}

type answerKey struct{}

// observe keeps what an answer's head says, for those who asked by the context.
func observe(resp *http.Response, took time.Duration) {
	a, ok := resp.Request.Context().Value(answerKey{}).(*Answer)
	if !ok {
		return
	}
	*a = Answer{Status: resp.StatusCode, Proto: resp.Proto, Took: took,
		Via: Clean(resp.Header.Get("Via"), 80), Type: Clean(resp.Header.Get("Content-Type"), 80)}
	a.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	if to, err := resp.Location(); err == nil {
		a.Location = Clean(to.Host, 200)
	}
}

// TestOnce is Test without a second try, and with the head of the answer.
func (c *Client) TestOnce(ctx context.Context) (TestResponse, Answer, error) {
	var out TestResponse
	var a Answer
	err := c.once(context.WithValue(ctx, answerKey{}, &a), http.MethodGet, "/v1/test", nil, &out)
	if err == nil && out.Status == "" {
		err = withHint(hintWrongService, "the answer to GET /v1/test is JSON, but not the service's: it has no status")
	}
	return out, a, err
}

// CreateOnce is CreateStream without a second try.
func (c *Client) CreateOnce(ctx context.Context) (LiveStream, error) {
	var out LiveStream
	if err := c.once(ctx, http.MethodPost, "/v1/live", []byte("{}"), &out); err != nil {
		return out, err
	}
	if out.ID == "" || out.URL == "" {
		return out, withHint(hintWrongService, "the service created a stream but gave no id and url for it")
	}
	return out, nil
}

// String is one line for people.
func (i TLSInfo) String() string {
	return fmt.Sprintf("%s, certificate for %s by %s", i.Version, i.Subject, i.Issuer)
}
