package main

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol/client"
	"hubbub/protocol/testkit"
)

// A server on a data folder alone accepts keys that are made while it runs,
// and those of before it was restarted.
func TestKeysOfADataFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	server, url := serve(t, "--data", dir, "--tls", "off")
	key := func(args ...string) string {
		t.Helper()
		p := start(t, append([]string{"key"}, args...)...)
		line := p.line(".")
		p.ends(0)
		return line
	}
	ask := func(url, key string) error {
		c := testkit.Must(client.New(client.Options{BaseURL: url, APIKey: key}))(t)
		defer c.Close()
		_, _, err := c.TestOnce(context.Background())
		return err
	}
	first := key("create", "--account", "a", "--plan", "pro", "--expires", "720h", "--data", dir)
	testkit.NoError(t, ask(url, first))
	if err := ask(url, first+"x"); err == nil {
		t.Error("any key is accepted")
	}
	key("rotate", "--data", dir)
	second := key("create", "--account", "b", "--data", dir)

	third := key("create", "--account", "c", "--data", dir)
	list := start(t, "key", "list", "--data", dir)
	id := strings.Fields(list.line(` c `))[0]
	testkit.Equal(t, key("revoke", id, "--data", dir), id, "revoked")
	testkit.Eventually(t, "the key to be refused", func() bool { return ask(url, third) != nil })
	after := start(t, "key", "list", "--data", dir, "-o", "json")
	after.ends(0)
	testkit.Equal(t, strings.Count(after.output(), `"revoked": null`), 2, "keys that are not revoked")
	start(t, "key", "revoke", "no-such-key", "--data", dir).ends(0, "a static key is not")
	start(t, "key", "revoke", "--data", dir).ends(exitUsage)

	server.signal(syscall.SIGTERM)
	server.ends(0)
	_, url = serve(t, "--data", dir, "--tls", "off")
	for _, k := range []string{first, second} {
		testkit.NoError(t, ask(url, k))
	}
	if ask(url, third) == nil {
		t.Error("a revoked key is accepted after a restart")
	}
}
