package client

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

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
	variable := strings.ToUpper(r.URL.Scheme) + "_PROXY"
	return nil, &proxyError{"the address of the proxy in " + variable + " is not valid", // it may contain a password
		"Write it as http://HOST:PORT, or exclude the service with NO_PROXY."}
}

// proxyError is an invalid address of a proxy, or its refusal to open a tunnel.
type proxyError struct{ what, fix string }

func (e *proxyError) Error() string { return e.what }

// proxyUnreachable attributes an error of the connection to the proxy.
func proxyUnreachable(err error) error {
	return hint.Errorf("The environment sets this proxy in HTTPS_PROXY or HTTP_PROXY: correct its address, or exclude the service with NO_PROXY.",
		"the proxy cannot be reached: %w", err)
}
