package main

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol/client"
)

// A server on a data folder alone accepts keys that are made while it runs,
// and those of before it was restarted.
func TestKeysOfADataFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	server := start(t, "serve", "--data", dir, "--listen", "127.0.0.1:0", "--tls", "off")
	url := strings.Fields(server.line("^ready "))[1]
	key := func(args ...string) string {
		t.Helper()
		p := start(t, append([]string{"key"}, args...)...)
		line := p.line(".")
		if code := p.exit(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		return line
	}
	ask := func(url, key string) error {
		c, err := client.New(client.Options{BaseURL: url, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _, err = c.TestOnce(context.Background())
		return err
	}
	first := key("create", "--account", "a", "--plan", "pro", "--expires", "720h", "--data", dir)
	if err := ask(url, first); err != nil {
		t.Fatalf("a new key: %v", err)
	}
	if err := ask(url, first+"x"); err == nil {
		t.Error("any key is accepted")
	}
	key("rotate", "--data", dir)
	second := key("create", "--account", "b", "--data", dir)

	third := key("create", "--account", "c", "--data", dir)
	list := start(t, "key", "list", "--data", dir)
	id := strings.Fields(list.line(` c `))[0]
	if got := key("revoke", id, "--data", dir); got != id {
		t.Errorf("revoked %q, want %q", got, id)
	}
	poll(t, "the key to be refused", 50*time.Millisecond, func() bool { return ask(url, third) != nil })
	if after := start(t, "key", "list", "--data", dir, "-o", "json"); after.exit() != 0 || strings.Count(after.output(), `"revoked": null`) != 2 {
		t.Errorf("listed %s", after.output())
	}
	if unknown := start(t, "key", "revoke", "no-such-key", "--data", dir); unknown.exit() != 0 || !strings.Contains(unknown.errors(), "no API key with this ID") {
		t.Errorf("an unknown ID: %s", unknown.errors())
	}
	if none := start(t, "key", "revoke", "--data", dir); none.exit() != exitUsage {
		t.Errorf("no ID: %s", none.errors())
	}

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := server.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	again := start(t, "serve", "--data", dir, "--listen", "127.0.0.1:0", "--tls", "off")
	url = strings.Fields(again.line("^ready "))[1]
	for _, k := range []string{first, second} {
		if err := ask(url, k); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	}
	if ask(url, third) == nil {
		t.Error("a revoked key is accepted after a restart")
	}
}
