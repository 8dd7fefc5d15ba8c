package protocol

import (
	"net/url"
	"strconv"
	"strings"
)

// HiddenAddress replaces an address that cannot be parsed and may contain a
// secret.
const HiddenAddress = "(hidden, because it may contain a password or key)"

// ShownAddress is an address as it may be displayed and written: without user
// name, password, query and fragment, where users put keys. The address need not
// be valid.
func ShownAddress(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		return u.String()
	}
	if strings.ContainsAny(raw, "@?#") {
		return HiddenAddress
	}
	return raw
}

// ValidPort reports whether an address has a port from 1 to 65535, or none.
func ValidPort(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && n > 0
}
