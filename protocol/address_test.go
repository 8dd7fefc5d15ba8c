package protocol

import (
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

func TestShownAddress(t *testing.T) {
	for _, address := range []string{"user:hunter2@host", "hunter2@host:8443", "//user:hunter2@host", "user:hunter2/x@host",
		"host?key=hunter2", "host#hunter2", "https://user:hunter2@", "https://user:hunter2/x@host", "https://user:%hunter2@host", "nats://u:hunter2@a",
		"user:hunter2?x@host", "https://host?key=hunter2", "https:///path?key=hunter2"} {
		if shown := ShownAddress(address); strings.Contains(shown, "hunter2") {
			t.Errorf("%s is shown as %s", address, shown)
		}
	}
	for address, want := range map[string]string{"host:8443": "host:8443", "https://user@host/a?b#c": "https://host/a", "nonsense": "nonsense"} {
		testkit.Equal(t, ShownAddress(address), want, address, "is shown as")
	}
}
