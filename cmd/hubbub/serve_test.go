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
)

// TestServe uses the server as a remote service: over TLS with its own
// certificate, twice, then stops it with SIGTERM.
func TestServe(t *testing.T) {
	t.Parallel()
	data, talk := t.TempDir(), talkFile(t, 0)
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--api-key", "first", "--api-key", "second", "--data", data)
	url := strings.TrimPrefix(server.line(`^ready `), "ready ")
	if !strings.HasPrefix(url, "https://127.0.0.1:") {
		t.Fatalf("ready line names %q", url)
	}

	client := start(t, "live", "--input", talk, "--server", url, "--api-key", "second", "--insecure", "--output", "json")
	trusting := start(t, "live", "--input", talk, "--server", url, "--api-key", "first", "--ca", filepath.Join(data, "ca.pem"), "--output", "json")
	first := client.line(`speaker`)
	var turn struct {
		Speaker    string
		Start, End float64
	}
	if err := json.Unmarshal([]byte(first), &turn); err != nil || turn.Speaker != "SPEAKER_00" || turn.End <= turn.Start {
		t.Errorf("first turn %q: %v", first, err)
	}

	trusting.line(`speaker`)

	untrusting := start(t, "live", "--input", talk, "--server", url, "--api-key", "first", "--output", "json")
	if code := untrusting.exit(); code != exitFailed {
		t.Errorf("without --insecure or --ca: exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(untrusting.errors(), "--ca") {
		t.Errorf("the hint does not name --ca: %s", untrusting.errors())
	}
	wrong := start(t, "live", "--input", talk, "--server", url, "--api-key", "third", "--insecure")
	if code := wrong.exit(); code != exitFailed || !strings.Contains(wrong.errors(), "key") {
		t.Errorf("wrong key: exit code %d, standard error %q", code, wrong.errors())
	}

	// SIGTERM with a stream open: it is finished, closed with 1001, and the
	// client says why it ended.
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := server.exit(); code != exitOK {
		t.Errorf("the server exits with %d, want 0", code)
	}
	if code := client.exit(); code != exitFailed {
		t.Errorf("the client exits with %d, want %d", code, exitFailed)
	}
	if !strings.Contains(client.errors(), "1001") {
		t.Errorf("the client does not name the close code: %s", client.errors())
	}
	if code := trusting.exit(); code != exitFailed {
		t.Errorf("the other client exits with %d, want %d", code, exitFailed)
	}
}

// TestServePlain serves without TLS and responds to curl's way of asking.
func TestServePlain(t *testing.T) {
	t.Parallel()
	_, url := servePlain(t)
	if !strings.HasPrefix(url, "http://") {
		t.Fatalf("ready line names %q", url)
	}
	var body struct{ Status string }
	callPlain(t, http.MethodGet, url+"/v1/test", "", http.StatusOK, &body)
	if body.Status != "OK" {
		t.Errorf("the body is %+v", body)
	}
	second := start(t, "serve", "--listen", strings.TrimPrefix(url, "http://"), "--api-key", "k", "--tls", "off")
	if code := second.exit(); code != exitFailed {
		t.Errorf("a second server on the same port exits with %d", code)
	}
}

// SIGTERM with half an upload: the server waits for it as long as for streams,
// cuts it off, and exits with 0.
func TestServeEndsBesideAStalledUpload(t *testing.T) {
	t.Parallel()
	server, base := servePlain(t)
	var location protocol.MediaLocation
	callPlain(t, http.MethodPost, base+"/v1/media/input", `{"url":"media://half"}`, http.StatusCreated, &location)
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf", strings.TrimPrefix(location.URL, base)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // until the server reads the body
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := server.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// servePlain starts a server without TLS and returns its address.
func servePlain(t *testing.T, args ...string) (server *program, url string) {
	t.Helper()
	server = start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--api-key", "k", "--tls", "off"}, args...)...)
	return server, strings.TrimPrefix(server.line(`^ready `), "ready ")
}

// callPlain calls an operation of a server that servePlain started, which must
// response with a status and JSON.
func callPlain(t *testing.T, method, url, body string, status int, out any) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s: status %d, %v", method, url, resp.StatusCode, err)
	}
}

// terminate sends SIGTERM.
func (p *program) terminate() {
	p.t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// With --drain a stream that is open at SIGTERM reaches its own end.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	server, url := servePlain(t, "--drain", "60s")
	client := start(t, "live", "--input", talkFile(t, 0), "--server", url, "--api-key", "k", "--output", "json")
	client.line(`speaker`)
	server.terminate()
	poll(t, "not ready", 20*time.Millisecond, func() bool {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	if code := client.exit(); code != exitOK {
		t.Errorf("the client exits with %d: %s", code, client.errors())
	}
	if code := server.exit(); code != exitOK {
		t.Errorf("the server exits with %d", code)
	}
}

// A second SIGTERM ends the draining: the open streams are closed with 1001.
func TestServeSecondSignalEndsDraining(t *testing.T) {
	t.Parallel()
	server, url := servePlain(t, "--drain", "1h")
	client := start(t, "live", "--input", talkFile(t, 0), "--server", url, "--api-key", "k", "--output", "json")
	client.line(`speaker`)
	server.terminate()
	poll(t, "draining", 20*time.Millisecond, func() bool { return strings.Contains(server.errors(), "msg=draining") })
	server.terminate()
	if code := server.exit(); code != exitOK {
		t.Errorf("the server exits with %d", code)
	}
	if code := client.exit(); code != exitFailed || !strings.Contains(client.errors(), "1001") {
		t.Errorf("the client exits with %d: %s", code, client.errors())
	}
}

// Every line of a JSON log is an object, and --log-level leaves out the rest.
func TestServeLog(t *testing.T) {
	t.Parallel()
	server, url := servePlain(t, "--log-format", "json", "--log-level", "warn", "--fault", "mute")
	resp, err := http.Get(url + "/v1/test")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	server.terminate()
	if code := server.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
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
	text, _ := servePlain(t, "--log-level", "debug")
	poll(t, "a line as text", 20*time.Millisecond, func() bool { return strings.Contains(text.errors(), "level=INFO msg=serving") })
	if !strings.Contains(text.errors(), "level=DEBUG") {
		t.Error("no line of the level debug")
	}
}
