package protocol

import (
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
)

// explain turns an error of the network, on the way to the host of u, into one
// line that says what happened and a hint that says what to do. It keeps the
// cause for errors.Is, but never shows an address beyond host and port: a
// stream's has a token in it.
func explain(ctx context.Context, u *url.URL, timeout time.Duration, err error) error {
	if ctxErr := ctx.Err(); errors.Is(ctxErr, context.Canceled) {
		return fmt.Errorf("connecting to %s: %w", hostPort(u), ctxErr)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		timeout = 0 // the caller's was shorter
	}
	what, hint := cause(u, timeout, err)
	return &hinted{err: &networkError{text: what, cause: err}, hint: hint}
}

// networkError shows its own text in place of the cause's.
type networkError struct {
	text  string
	cause error
}

func (e *networkError) Error() string { return e.text }
func (e *networkError) Unwrap() error { return e.cause }

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "ws": "80"}[u.Scheme]
	}
	if port == "" {
		port = "443"
	}
	return Clean(net.JoinHostPort(u.Hostname(), port), 260)
}

func cause(u *url.URL, timeout time.Duration, err error) (what, hint string) {
	where := hostPort(u)
	var (
		op    *net.OpError
		dns   *net.DNSError
		timed net.Error
	)
	if errors.As(err, &op) && op.Op == "proxyconnect" { // net/http's mark
		return "the proxy on the way to " + where + " cannot be used: " + lastCause(op.Err),
			"check HTTPS_PROXY, or except the service with NO_PROXY"
	}
	if what, hint = tlsCause(u, err); what != "" {
		return what, hint
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no host has the name " + Clean(dns.Name, 253), "check the spelling of --server, and the network"
	case errors.As(err, &dns):
		return "looking up the name " + Clean(dns.Name, 253) + " failed", "check that this machine is on the network and has a name server"
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout():
		within := "in time"
		if timeout > 0 {
			within = "within " + timeout.String()
		}
		return "no answer from " + where + " " + within,
			"check address and port; a firewall may swallow the connection, or the service is overloaded"
	case errors.Is(err, syscall.ECONNREFUSED):
		return where + " refuses connections", "nothing listens there: check address and port, and whether the server runs"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "there is no way to " + where, "check that this machine is on the network"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return where + " broke the connection off", "try again; if it goes on, a proxy or firewall may be in between"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return where + " closed the connection without an answer", "check that the service listens on this port, and that it is https:// or http:// as there"
	case strings.Contains(err.Error(), "malformed HTTP"),
		strings.Contains(err.Error(), "readLoopPeekFailLocked"): // net/http: it spoke before it was asked
		return where + " does not answer in HTTP", "check the port; if it expects TLS, write https://"
	}
	return "connecting to " + where + ": " + lastCause(err), "check the address (--server) and the network"
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
		return "the certificate of " + where + " is signed by an authority that this machine does not know",
			"if it is your own server, trust its certificate with --ca FILE, or accept any with --insecure"
	case errors.As(err, &name):
		return "the certificate of " + where + " is made out to " + madeOutTo(name.Certificate),
			"use the name that the certificate has in --server, or accept any with --insecure"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		if time.Now().Before(invalid.Cert.NotBefore) {
			return "the certificate of " + where + " is not valid before " + invalid.Cert.NotBefore.UTC().Format(time.RFC3339),
				"check the clock of this machine"
		}
		return "the certificate of " + where + " expired on " + invalid.Cert.NotAfter.UTC().Format(time.RFC3339),
			"the operator of the service must renew it; check the clock of this machine"
	case errors.Is(err, http.ErrSchemeMismatch),
		errors.As(err, &record) && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP"):
		return where + " answers without TLS",
			"the port may be the wrong one; if the server really has no TLS, write http:// instead of https://"
	case errors.As(err, &record):
		return where + " does not speak TLS", "check the port in --server"
	case errors.As(err, &verify), errors.As(err, &invalid):
		return "the certificate of " + where + " is not accepted: " + lastCause(err),
			"if it is your own server, trust its certificate with --ca FILE, or accept any with --insecure"
	case errors.As(err, &alert), strings.Contains(err.Error(), "tls: "):
		return "the TLS handshake with " + where + " failed: " + lastCause(err),
			"client and server may have no version of TLS in common, or a proxy stands in between"
	}
	return "", ""
}

// madeOutTo lists the names of a certificate, a few at most.
func madeOutTo(c *x509.Certificate) string {
	var names []string
	if c != nil {
		names = append(names, c.DNSNames...)
		for _, ip := range c.IPAddresses {
			names = append(names, ip.String())
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	more := ""
	if len(names) > 3 {
		more = fmt.Sprintf(" and %d more", len(names)-3)
		names = names[:3]
	}
	return Clean(strings.Join(names, ", "), 200) + more
}

// lastCause is the text of the innermost error that is not made of others:
// without the address that net/http and net put in front.
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
			return Clean(err.Error(), 200)
		}
	}
}
