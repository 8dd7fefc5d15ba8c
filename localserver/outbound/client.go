package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	headTimeout = 30 * time.Second
	// maxHead bounds the head of a response, in bytes.
	maxHead = 64 << 10
	// maxRedirects bounds the redirects of one request.
	maxRedirects = 5
)

// Policy says which addresses may be called.
type Policy struct {
	Hosts Hosts
	// Others allows hosts that are not named, by https and at public addresses.
	Others bool
	// Private allows private addresses for every named host. Otherwise the
	// address itself has to be named.
	Private bool

	resolver *net.Resolver // nil = the default one
}

// ErrRefused is an address that the policy does not allow.
var ErrRefused = errors.New("the address is not allowed")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Check returns ErrRefused for an address that may not be requested, as far as its text
// says.
func (p Policy) Check(u *url.URL) error {
	scheme, host := strings.ToLower(u.Scheme), u.Hostname()
	named := p.Hosts.Name(host)
	switch {
	case scheme != "http" && scheme != "https":
		return refused("%s is not http or https", scheme)
	case u.User != nil:
		return refused("it contains credentials")
	case !named && !p.Others:
		return refused("the operator has not named the host %s", host)
	case !named && scheme != "https":
		return refused("the host %s is called by https only", host)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		return p.checkIP(host, ip)
	case normal(host) == "localhost" && !p.Hosts.address(loopback): // wherever it is looked up (RFC 6761)
		return p.checkIP(host, netip.IPv6Loopback())
	case looksNumeric(normal(host)):
		return refused("%s is neither a name nor an address in its usual form", host)
	}
	return nil
}

// checkIP returns ErrRefused for an address of a host that may not be connected to.
func (p Policy) checkIP(host string, ip netip.Addr) error {
	if public(ip) || p.Hosts.address(ip) || p.Private && p.Hosts.own(host) {
		return nil
	}
	return refused("%s is at a private address, which the operator has not named", host)
}

// Do sends a request to an address that the policy allows, else it returns ErrRefused. It
// uses no proxy and keeps no connections. It follows redirects, each of which is checked,
// if follow is true. The caller closes the body.
func (p Policy) Do(r *http.Request, follow bool) (*http.Response, error) {
	if err := p.Check(r.URL); err != nil {
		return nil, err
	}
	client := http.Client{
		Transport: &http.Transport{
			DialContext: p.dial, DisableKeepAlives: true, DisableCompression: true,
			TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: headTimeout, MaxResponseHeaderBytes: maxHead,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			r.Header.Del("Referer") // the address before, which may hold secrets
			switch {
			case !follow:
				return http.ErrUseLastResponse
			case len(via) > maxRedirects:
				return refused("more than %d redirects", maxRedirects)
			}
			return p.Check(r.URL)
		},
	}
	return client.Do(r)
}

// Get is Do for an address, with redirects.
func (p Policy) Get(ctx context.Context, address string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return p.Do(r, true)
}

// Reason is why a request failed, without what its reader may not know: the rest of the
// address, which may hold secrets, and addresses of this network.
func Reason(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("%s: %s", lookup.Name, lookup.Err)
	}
	var connection *net.OpError
	for errors.As(err, &connection) {
		err = connection.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEndedEarly
	}
	return err
}

var errEndedEarly = errors.New("the connection ended before the response was complete")

// dial connects to a host. The address is checked when it is known, directly
// before the connection.
func (p Policy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout, Resolver: p.resolver, Control: func(_, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return refused("%s is not an address", resolved)
		}
		return p.checkIP(host, at.Addr())
	}}
	return d.DialContext(ctx, network, address)
}
