// Package outbound calls addresses that clients of the service have given,
// without giving them access to what only this machine can reach: loopback,
// private networks, and metadata services of clouds (server-side request forgery).
//
// Names are checked as they are requested, and addresses as they are connected to,
// after every look-up and redirect. So neither a name that resolves to a private
// address nor one that changes its address passes.
package outbound

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Hosts are what an operator has named. The zero value names nothing.
type Hosts struct {
	names    map[string]bool // in lower case
	suffixes []string        // ".example.com" for *.example.com
	networks []netip.Prefix
	all      bool
}

var hostName = regexp.MustCompile(`\A[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\z`)

// ParseHosts parses names, *.NAME for those below a name, * for all, addresses and
// networks (10.0.0.0/8).
func ParseHosts(list []string) (h Hosts, err error) {
	h.names = map[string]bool{}
	for _, text := range list {
		text = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), "."))
		suffix, wild := strings.CutPrefix(text, "*.")
		switch {
		case text == "*":
			h.all = true
		case wild && hostName.MatchString(suffix):
			h.suffixes = append(h.suffixes, "."+suffix)
		default:
			if network, err := netip.ParsePrefix(text); err == nil {
				h.networks = append(h.networks, network.Masked())
			} else if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
				ip = ip.Unmap().WithZone("")
				h.networks = append(h.networks, netip.PrefixFrom(ip, ip.BitLen()))
			} else if isName(text) {
				h.names[text] = true
			} else {
				return Hosts{}, fmt.Errorf("%q is not a host", text)
			}
		}
	}
	return h, nil
}

// looksNumeric reports whether a resolver may take a name for an address in
// another notation: 2130706433, 0x7f.1, 127.1.
func looksNumeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last != "" && last[0] >= '0' && last[0] <= '9'
}

// Name reports whether a host of an address is named, also by *.
func (h Hosts) Name(host string) bool {
	host = normal(host)
	_, err := netip.ParseAddr(host)
	return h.own(host) || h.all && (err == nil || isName(host))
}

// normal is a host as it is compared.
func normal(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// isName reports whether a host is a name, in no notation of an address.
func isName(host string) bool { return hostName.MatchString(host) && !looksNumeric(host) }

// own reports whether a host is named otherwise than by *.
func (h Hosts) own(host string) bool {
	host = normal(host)
	if ip, err := netip.ParseAddr(host); err == nil {
		return h.address(ip)
	}
	below := func(suffix string) bool { return strings.HasSuffix(host, suffix) }
	return isName(host) && (h.names[host] || slices.ContainsFunc(h.suffixes, below))
}

// address reports whether an address itself is named. The name localhost names the
// loopback addresses.
func (h Hosts) address(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if h.names["localhost"] && ip.IsLoopback() {
		return true
	}
	return within(h.networks, ip)
}

// within reports whether an address is in one of some networks.
func within(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
}

// The networks that nothing public is in (RFC 6890 and later), and those that
// carry other addresses in their own.
var reserved = prefixes("0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 " +
	"192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 " +
	"::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8")

// nat64 carries an IPv4 address in its last 32 bits (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(list string) (all []netip.Prefix) {
	for text := range strings.FieldsSeq(list) {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// public reports whether an address is one of the public Internet.
func public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		b := ip.As16()
		return public(netip.AddrFrom4([4]byte(b[12:])))
	}
	return ip.IsValid() && !within(reserved, ip)
}
