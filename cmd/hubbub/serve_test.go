package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// TestServe uses the server as a remote service: over TLS with its own
// certificate, twice, then stops it with SIGTERM.
func TestServe(t *testing.T) {
	t.Parallel()
	data, talk := t.TempDir(), talkFile(t, 0)
	server, url := serve(t, "--api-key", "first", "--api-key", "second", "--data", data)
	if !strings.HasPrefix(url, "https://127.0.0.1:") {
		t.Fatalf("ready line names %q", url)
	}

	client := start(t, "live", "--input", talk, "--server", url, "--api-key", "second", "--insecure", "--output", "json", "--reconnect", "1s")
	trusting := start(t, "live", "--input", talk, "--server", url, "--api-key", "first", "--ca", filepath.Join(data, "ca.pem"), "--output", "json", "--reconnect", "1s")
	client.line(`speaker":"SPEAKER_00"`)
	trusting.line(`speaker`)

	start(t, "live", "--input", talk, "--server", url, "--api-key", "first", "--output", "json").ends(exitFailed, "--ca")
	start(t, "live", "--input", talk, "--server", url, "--api-key", "third", "--insecure").ends(exitFailed, "key")

	// SIGTERM with a stream open: it is finished, closed with 1001, and the
	// client says why it ended.
	server.signal(syscall.SIGTERM)
	server.ends(exitOK)
	client.ends(exitFailed, "1001")
	trusting.ends(exitFailed)
}

// With --drain a stream that is open at SIGTERM reaches its own end.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	server, url := serve(t, "--api-key", "k", "--tls", "off", "--drain", "60s")
	client := start(t, "live", "--input", talkFile(t, 12), "--server", url, "--api-key", "k", "--output", "json")
	client.line(`speaker`)
	server.signal(syscall.SIGTERM)
	testkit.Eventually(t, "not ready", func() bool {
		resp := testkit.Must(http.Get(url + "/readyz"))(t)
		resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	client.ends(exitOK)
	server.ends(exitOK)
}

// A second SIGTERM ends the draining: the open streams are closed with 1001.
func TestServeSecondSignalEndsDraining(t *testing.T) {
	t.Parallel()
	server, url := serve(t, "--api-key", "k", "--tls", "off", "--drain", "1h")
	client := start(t, "live", "--input", talkFile(t, 0), "--server", url, "--api-key", "k", "--output", "json", "--reconnect", "1s")
	client.line(`speaker`)
	server.signal(syscall.SIGTERM)
	server.says("msg=draining", 1)
	time.Sleep(oneInterrupt) // after the first one was handled
	server.signal(syscall.SIGTERM)
	server.ends(exitOK)
	client.ends(exitFailed, "1001")
}

// Every line of a JSON log is an object, and --log-level leaves out the rest.
func TestServeLog(t *testing.T) {
	t.Parallel()
	server, url := serve(t, "--api-key", "k", "--tls", "off", "--log-format", "json", "--log-level", "warn", "--fault", "mute")
	resp := testkit.Must(http.Get(url + "/v1/test"))(t)
	resp.Body.Close()
	server.signal(syscall.SIGTERM)
	server.ends(exitOK)
	lines := strings.Split(strings.TrimSpace(server.errors()), "\n")
	for _, line := range lines {
		var record struct {
			Level, Msg, Fault string
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level != "WARN" || record.Msg == "" || record.Fault != "mute" {
			t.Errorf("%q: %v", line, err)
		}
	}
	testkit.Equal(t, len(lines), 1, "lines", lines, "with the warning about the fault alone")
	full, _ := serve(t, "--api-key", "k", "--tls", "off", "--log-format", "json")
	full.says(`"address":"127.0.0.1:`, 1)
	text, _ := serve(t, "--api-key", "k", "--tls", "off", "--log-level", "debug")
	text.says("level=INFO msg=serving", 1)
	testkit.Contains(t, text.errors(), "level=DEBUG", "no line of the level debug")
}
