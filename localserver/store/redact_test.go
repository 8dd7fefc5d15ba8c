package store

import "testing"

// Credentials are in no address that is displayed.
func TestRedact(t *testing.T) {
	t.Parallel()
	for addresses, want := range map[string]string{
		"nats://one:4222, tls://user:word@two:4222": "nats://one:4222,tls://two:4222",
		"user:word@one:4222,token@two":              "nats://one:4222,nats://two",
		"nats://user:wo%rd@one":                     "(an address that cannot be read)",
	} {
		if got := redact(addresses); got != want {
			t.Errorf("%s is shown as %s, want %s", addresses, got, want)
		}
	}
}
