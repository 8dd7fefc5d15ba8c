package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/errno"
	"hubbub/protocol/hint"
)

// ResponseError is the response of a service to an HTTP request or a WebSocket
// handshake that did not succeed. Its texts come from the network and are
// cleaned for a terminal.
type ResponseError struct {
	Status    int    // HTTP status
	RequestID string // of the service's log; "" where it gave none
	Message   string // one line; never empty
	Fields    []protocol.ValidationError
	// RetryAfter is how long the service asks to wait; 0 where it did not say.
	RetryAfter time.Duration

	hint string // "" = by the status
	own  bool   // the body is the service's, and not that of something in between
	page bool   // the body is a web page
}

// Error is one line: status, message, fields, request id.
func (e *ResponseError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the service returned %d", e.Status)
	if text := http.StatusText(e.Status); text != "" && !strings.EqualFold(text, e.Message) {
		b.WriteString(" " + text)
	}
	b.WriteString(": " + e.Message)
	for i, f := range e.Fields {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + f.Field + " " + f.Message)
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// Hint says what to do about the status.
func (e *ResponseError) Hint() string {
	if e.hint != "" {
		return e.hint
	}
	switch s := e.Status; {
	case s == http.StatusUnauthorized:
		return "Check the API key (--api-key or HUBBUB_API_KEY): it is missing, wrong, expired or revoked, or a proxy in between removes it."
	case s == http.StatusPaymentRequired:
		return "The account of this API key has no subscription; subscribe or use another key."
	case s == http.StatusForbidden:
		return "This API key does not permit the operation; use another key."
	case s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		return "Check the address (--server): there is no service at this name and path."
	case s == http.StatusConflict:
		return "Its state has changed meanwhile; look at it again."
	case s == http.StatusTooManyRequests:
		wait := "a minute"
		if e.RetryAfter > 0 {
			wait = e.RetryAfter.Round(time.Second).String()
		}
		return fmt.Sprintf("Too many requests or concurrent streams; wait %s and try again.", wait)
	case s == http.StatusServiceUnavailable && e.RetryAfter > 0:
		return fmt.Sprintf("The service is not ready; try again in %s.", e.RetryAfter.Round(time.Second))
	case s == http.StatusNetworkAuthenticationRequired:
		return hintPortal
	case s >= 500:
		return "The service failed; try again later, and give its operator the request id if there is one."
	case s >= 300 && s < 400:
		return "The service has moved; give its new address with --server."
	}
	return "The service does not accept this request; client and service may be of different versions."
}

// explain is explainNetwork for a connection that goes through the proxy of the
// environment, if there is one. An error names it, unless the certificate of the
// service is the cause.
func (c *Client) explain(ctx context.Context, u *url.URL, err error) error {
	explained := explainNetwork(ctx, u, c.timeout, err)
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	proxy, _ := c.proxy(u)
	switch {
	case proxy == nil, ctx.Err() == context.Canceled, hint.Of(err) != "":
		return explained
	case errors.As(err, &op) && (op.Op == "proxyconnect" || op.Op == "dial"):
		return proxyUnreachable(explainNetwork(ctx, proxy, c.timeout, op.Err))
	case errors.As(err, &op) && (op.Op == connectTunnel || op.Op == socksConnect):
		return c.noTunnel(ctx, proxy, hostPort(u), op)
	case errors.As(err, &certificate):
		return explained
	}
	return hint.Errorf(hint.Of(explained)+" The connection goes through a proxy: check it in HTTPS_PROXY or HTTP_PROXY, or exclude the service with NO_PROXY.",
		"through the proxy %s: %w", hostPort(proxy), explained)
}

// explainNetwork turns an error of the connection to the host of u into one line
// that says what happened and a hint that says what to do. It keeps the cause for
// errors.Is, but shows no more of an address than host and port: the address of a
// stream contains a token. One that has a hint already is of this package.
func explainNetwork(ctx context.Context, u *url.URL, timeout time.Duration, err error) error {
	if ctxErr := ctx.Err(); errors.Is(ctxErr, context.Canceled) {
		return fmt.Errorf("connecting to %s: %w", hostPort(u), ctxErr)
	}
	if explained := hint.In(err); explained != nil {
		return explained
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		timeout = 0 // the caller's is shorter
	}
	what, fix := networkCause(u, timeout, err)
	return hint.Add(&networkError{text: what, cause: err}, fix)
}

// networkError shows its own text instead of the cause's.
type networkError struct {
	text  string
	cause error
}

func (e *networkError) Error() string { return e.text }
func (e *networkError) Unwrap() error { return e.cause }

func hostPort(u *url.URL) string {
	usual := map[string]string{"http": "80", "ws": "80", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	port := cmp.Or(u.Port(), usual, "443")
	return protocol.Clean(net.JoinHostPort(u.Hostname(), port), 260)
}

// hintCut is for a connection that was accepted and ended without a response.
const hintCut = "Try again. If it happens again at once, check the port, and whether the service expects https:// or http://; a proxy or firewall may be in between, or a load balancer whose service does not run. If it takes seconds, packets are lost: a VPN may drop large ones (try a smaller MTU)."

func networkCause(u *url.URL, timeout time.Duration, err error) (what, hint string) {
	where := hostPort(u)
	var dns *net.DNSError
	var op *net.OpError
	if what, hint = tlsCause(u, err); what != "" {
		return what, hint
	}
	dialing := errors.As(err, &op) && op.Op == "dial"
	if dialing && op.Addr != nil {
		if at, _, err := net.SplitHostPort(op.Addr.String()); err == nil && at != u.Hostname() {
			where += " (" + at + ")"
			if ip := net.ParseIP(at); ip != nil && ip.IsUnspecified() {
				return "the name " + protocol.Clean(u.Hostname(), 253) + " is looked up as " + at + ", which is the address of no service",
					"A name server that filters names, or the hosts file of this machine, blocks it: ask whoever runs the network."
			}
		}
	}
	switch {
	case errors.As(err, &dns):
		server := ""
		if dns.Server != "" { // the resolver of the system does not say
			server = " (name server " + protocol.Clean(dns.Server, 100) + ")"
		}
		if dns.IsNotFound {
			return "no host has the name " + protocol.Clean(dns.Name, 253) + server,
				"Check the spelling of --server, and the network: only the network of a company, or its VPN, may know the name."
		}
		why := dns.Err
		switch {
		case dns.IsTimeout && server == "":
			why = "no response from a name server"
		case dns.IsTimeout:
			why = "no response"
		case strings.Contains(why, dns.Server):
			server = ""
		}
		return "looking up the name " + protocol.Clean(dns.Name, 253) + " failed: " + protocol.Clean(why, 100) + server,
			"Check that this machine is on the network, and its name server."
	case isTimeout(err):
		within := "in time"
		if timeout > 0 {
			within = "within " + timeout.String()
		}
		if dialing {
			return "no response from " + where + " " + within,
				"Check address and port; a firewall may drop the packets, or the address needs a VPN."
		}
		return "no response from " + where + " " + within,
			"The port accepts connections, but nothing responds: check that it is the service's; a firewall may drop packets, or the service is overloaded."
	case errno.Is(err, syscall.ECONNREFUSED):
		return where + " refuses connections", "Nothing listens there, or a firewall rejects connections: check address and port, and whether the server runs."
	case errno.Is(err, syscall.ENETUNREACH, syscall.EHOSTUNREACH):
		return "there is no route to " + where, "Check that this machine is on the network; a private address needs its VPN, an IPv6 address a network with IPv6. A firewall that rejects connections looks the same."
	case dialing && errno.Is(err, syscall.EACCES, syscall.EPERM):
		return "this machine does not permit connections to " + where, "Check its firewall and routes, and the sandbox or container that hubbub runs in."
	case errno.Is(err, syscall.ECONNRESET, syscall.EPIPE):
		return where + " reset the connection", hintCut
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return where + " closed the connection without a response", hintCut
	case strings.Contains(err.Error(), "malformed HTTP"),
		strings.Contains(err.Error(), "readLoopPeekFailLocked"): // net/http: data before a request
		return where + " does not respond in HTTP", "Check the port; if it expects TLS, write https://"
	}
	return "connecting to " + where + ": " + lastCause(err), "Check the address (--server) and the network."
}

func tlsCause(u *url.URL, err error) (what, hint string) {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		verify  *tls.CertificateVerificationError
	)
	where := hostPort(u)
	switch {
	case errors.As(err, &unknown):
		what = "the certificate of " + where + " is signed by an authority that this machine does not know"
		if errors.As(err, &verify) {
			what += ": " + issuerName(verify.UnverifiedCertificates[0])
		}
		return what, hintAuthority(err)
	case errors.As(err, &name) && certificateNames(name.Certificate) == noName:
		return "the certificate of " + where + " is issued for " + noName,
			"The operator of the service must issue it with the host name as a subject alternative name: a common name does not count. --insecure accepts any certificate."
	case errors.As(err, &name):
		return "the certificate of " + where + " is issued for " + certificateNames(name.Certificate) + ", by " + issuerName(name.Certificate),
			"Use a name of the certificate in --server. If you know none of them, something else responds in place of the service: a captive portal (open a web page in a browser), or a proxy that intercepts TLS. Your own server: --insecure accepts any certificate."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		what, hint = "the certificate of "+where, "The operator of the service must renew it, unless the clock of this machine is wrong."
		if errors.As(err, &verify) && !invalid.Cert.Equal(verify.UnverifiedCertificates[0]) {
			what = fmt.Sprintf("the certificate of %s, an authority of %s,", protocol.Clean(invalid.Cert.Subject.String(), 120), where)
			hint = "The chain that the service sends, or the file of --ca, is out of date: its operator must replace it, unless the clock of this machine is wrong."
		}
		now := time.Now()
		if now.Before(invalid.Cert.NotBefore) {
			what += " is not valid before " + utc(invalid.Cert.NotBefore)
		} else {
			what += " expired on " + utc(invalid.Cert.NotAfter)
		}
		return what + "; this machine's clock says " + utc(now), hint
	case errors.Is(err, http.ErrSchemeMismatch),
		errors.As(err, &record) && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP"):
		return where + " responds without TLS",
			"The port may be the wrong one; if the server really has no TLS, write http:// instead of https://"
	case errors.As(err, &record):
		return where + " does not speak TLS", "Check the port in --server."
	case errors.As(err, &verify), errors.As(err, &invalid):
		return "the certificate of " + where + " is not accepted: " + lastCause(err),
			"The operator of the service must issue another one; --insecure accepts any certificate."
	case strings.Contains(err.Error(), "tls: certificate required"):
		return where + " requires a certificate of the client", "Ask the operator of the service for an address without: hubbub has no such certificate."
	case strings.Contains(err.Error(), "tls: no application protocol"):
		return where + " does not offer HTTP/1.1", "WebSocket needs HTTP/1.1 (ALPN http/1.1): ask the operator of the service, or of the load balancer in front of it, to allow it."
	case errors.As(err, &alert), strings.Contains(err.Error(), "tls: "):
		return "the TLS handshake with " + where + " failed: " + lastCause(err),
			"The server may not know this name, have only versions before TLS 1.2, or require a certificate of the client; or a proxy is in between: show this to their operators."
	}
	return "", ""
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// hintAuthority says what to do about an authority that is not known.
func hintAuthority(err error) string {
	fix := "Your own server: trust its certificate with --ca FILE (check that a FILE given has it), or accept any certificate with --insecure. A proxy of your company that intercepts TLS: trust its authority with --ca. A captive portal: open a web page in a browser and log in."
	if verify, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && len(verify.UnverifiedCertificates) == 1 && !selfIssued(verify.UnverifiedCertificates[0]) {
		fix += " A public authority: the service does not send its intermediate certificates; tell its operator."
	}
	return fix
}

// selfIssued reports whether a certificate names itself as its authority.
func selfIssued(c *x509.Certificate) bool { return c.Issuer.String() == c.Subject.String() }

// noName is for a certificate without names, which has at most a common name.
const noName = "no name"

// certificateNames lists the names of a certificate, up to three.
func certificateNames(c *x509.Certificate) string {
	var names []string
	if c != nil {
		names = append(names, c.DNSNames...)
		for _, ip := range c.IPAddresses {
			names = append(names, ip.String())
		}
	}
	if len(names) == 0 {
		return noName
	}
	more := ""
	if len(names) > 3 {
		more = fmt.Sprintf(" and %d more", len(names)-3)
		names = names[:3]
	}
	return protocol.Clean(strings.Join(names, ", "), 200) + more
}

// lastCause is the text of the innermost error, without the address that net/http
// and net put in front.
func lastCause(err error) string {
	for {
		var outer *url.Error
		var op *net.OpError
		switch {
		case errors.As(err, &outer):
			err = outer.Err
		case errors.As(err, &op):
			err = op.Err
		default:
			return protocol.Clean(err.Error(), 200)
		}
	}
}
