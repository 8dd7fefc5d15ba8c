package client

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
)

// An address of a proxy that cannot be used is an error for the addresses that
// would go through it, not a reason to go around it.
func TestProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("no_proxy", "")
	t.Setenv("NO_PROXY", "inside.invalid")
	for value, want := range map[string]string{
		"":                              "",
		"127.0.0.1:1":                   "127.0.0.1:1",
		"http://u:hidden@127.0.0.1:1":   "127.0.0.1:1",
		"socks5://127.0.0.1":            "127.0.0.1:1080",
		"%zz":                           "error",
		"::::":                          "error",
		":8080":                         "error",
		"two words":                     "error",
		"socks4://u:hidden@127.0.0.1:1": "error",
	} {
		t.Setenv("HTTPS_PROXY", value)
		for address, proxied := range map[string]bool{"https://service.invalid": true, "https://inside.invalid": false,
			"https://127.0.0.1": false, "http://service.invalid": false} {
			proxy, err := newTestClient(t, Options{BaseURL: address}).Probe()
			got := ""
			switch {
			case err != nil:
				got = "error"
				if !strings.Contains(err.Error(), "the proxy in HTTPS_PROXY") || strings.Contains(err.Error(), "hidden") || !strings.Contains(hint.Of(err), "NO_PROXY") {
					t.Errorf("%q: %v; %s", value, err, hint.Of(err))
				}
			default:
				got = proxy.Proxy
			}
			if proxied && got != want || !proxied && got != "" {
				t.Errorf("HTTPS_PROXY=%q, %s: %s", value, address, got)
			}
		}
	}
	t.Setenv("HTTPS_PROXY", "::::")
	client := newTestClient(t, Options{BaseURL: "https://service.invalid"})
	if _, err := client.Test(context.Background()); err == nil || !strings.Contains(err.Error(), "the proxy in HTTPS_PROXY") {
		t.Errorf("%v", err)
	}
}

// An error of a connection through a proxy that accepts it and is silent, or
// closes it, names the proxy.
func TestProxyThatDoesNotRespond(t *testing.T) {
	t.Setenv("no_proxy", "")
	t.Setenv("NO_PROXY", "")
	for _, proxy := range []string{
		protocoltest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
		protocoltest.Listen(t, func(net.Conn) {}),
	} {
		t.Setenv("HTTPS_PROXY", proxy)
		client := newTestClient(t, Options{BaseURL: "https://service.invalid", Timeout: 200 * time.Millisecond})
		_, err := client.Test(context.Background())
		_, wsErr := client.OpenStream(context.Background(), "wss://service.invalid/s?token=tok-123")
		for _, err := range []error{err, wsErr} {
			if err == nil || !strings.HasPrefix(err.Error(), "through the proxy "+proxy+": ") || !strings.Contains(hint.Of(err), "NO_PROXY") {
				t.Errorf("%v; %s", err, hint.Of(err))
			}
			checkText(t, err)
		}
	}
}
