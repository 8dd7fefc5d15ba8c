package store

import (
	"context"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// Credentials are in no address that is displayed.
func TestRedact(t *testing.T) {
	t.Parallel()
	for addresses, want := range map[string]string{
		"nats://one:4222, tls://user:word@two:4222": "nats://one:4222,tls://two:4222",
		"user:word@one:4222,token@two":              "nats://one:4222,nats://two",
		"nats://user:wo%rd@one":                     "(an address that cannot be read)",
	} {
		testkit.Equal(t, redact(addresses), want, addresses, "is shown as")
	}
}

// An address that cannot be used is not repeated with its password.
func TestNATSErrorsShowNoSecret(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"nats://user:%hunter2@127.0.0.1:1", "nats://user:hunter2/x@127.0.0.1:1", "user:hunter2@127.0.0.1:1",
		"nats://127.0.0.1:1?key=hunter2", "nats://127.0.0.1:1,nats://user:hunter2\x7f@127.0.0.1:1"} {
		s, err := Open(context.Background(), Options{URL: address})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s can be used", address)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
