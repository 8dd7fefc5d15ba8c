package store

import (
	"context"
	"strings"
	"testing"
)

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
