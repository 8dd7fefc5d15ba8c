package main

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hubbub/protocol"
)

// A server on a data folder alone accepts keys that are made while it runs,
// and those of before it was restarted.
func TestKeysOfADataFolder(t *testing.T) {
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
		c, err := protocol.NewClient(protocol.ClientOptions{BaseURL: url, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Test(context.Background())
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
}
