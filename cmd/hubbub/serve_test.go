package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/protocol"
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
	first := client.line(`speaker`)
	var turn struct {
		Speaker    string
		Start, End float64
	}
	if err := json.Unmarshal([]byte(first), &turn); err != nil || turn.Speaker != "SPEAKER_00" || turn.End <= turn.Start {
		t.Errorf("first turn %q: %v", first, err)
	}

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

// TestServePlain serves without TLS and responds to curl's way of asking.
func TestServePlain(t *testing.T) {
	t.Parallel()
	_, url := serve(t, "--api-key", "k", "--tls", "off")
	if !strings.HasPrefix(url, "http://") {
		t.Fatalf("ready line names %q", url)
	}
	var body struct{ Status string }
	callPlain(t, http.MethodGet, url+"/v1/test", "", http.StatusOK, &body)
	if body.Status != "OK" {
		t.Errorf("the body is %+v", body)
	}
	start(t, "serve", "--listen", strings.TrimPrefix(url, "http://"), "--api-key", "k", "--tls", "off").ends(exitFailed)
}

// SIGTERM with half an upload: the server waits for it as long as for streams,
// cuts it off, and exits with 0.
func TestServeEndsBesideAStalledUpload(t *testing.T) {
	t.Parallel()
	server, base := serve(t, "--api-key", "k", "--tls", "off")
	var location protocol.MediaLocation
	callPlain(t, http.MethodPost, base+"/v1/media/input", `{"url":"media://half"}`, http.StatusCreated, &location)
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	testkit.NoError(t, err)
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf", strings.TrimPrefix(location.URL, base)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // until the server reads the body
	server.signal(syscall.SIGTERM)
	server.ends(exitOK)
}

// callPlain calls an operation of a server with the key k, which must respond with
// a status and JSON.
func callPlain(t *testing.T, method, url, body string, status int, out any) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	testkit.NoError(t, err)
	req.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultClient.Do(req)
	testkit.NoError(t, err)
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s: status %d, %v", method, url, resp.StatusCode, err)
	}
}

// With --drain a stream that is open at SIGTERM reaches its own end.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	server, url := serve(t, "--api-key", "k", "--tls", "off", "--drain", "60s")
	client := start(t, "live", "--input", talkFile(t, 12), "--server", url, "--api-key", "k", "--output", "json")
	client.line(`speaker`)
	server.signal(syscall.SIGTERM)
	testkit.Eventually(t, "not ready", func() bool {
		resp, err := http.Get(url + "/readyz")
		testkit.NoError(t, err)
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
	resp, err := http.Get(url + "/v1/test")
	testkit.NoError(t, err)
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
	if len(lines) != 1 {
		t.Errorf("%d lines, want the warning about the fault alone: %q", len(lines), lines)
	}
	full, _ := serve(t, "--api-key", "k", "--tls", "off", "--log-format", "json")
	full.says(`"address":"127.0.0.1:`, 1)
	text, _ := serve(t, "--api-key", "k", "--tls", "off", "--log-level", "debug")
	text.says("level=INFO msg=serving", 1)
	if !strings.Contains(text.errors(), "level=DEBUG") {
		t.Error("no line of the level debug")
	}
}
