package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"hubbub/protocol/hint"
	"hubbub/protocol/protocoltest"
	"hubbub/protocol/testkit"
)

const checkKey = "key-that-nobody-may-see"

// Ctrl-C ends the program with its code, and what was found so far is printed.
func TestCheckInterruptedProgram(t *testing.T) {
	t.Parallel()
	sending := make(chan struct{})
	address := protocoltest.Serve(t, protocoltest.Service{Stream: func(c *websocket.Conn) {
		_, _, _ = c.ReadMessage()
		close(sending)
		protocoltest.UntilEnd(c)
	}}.Handler())
	p := start(t, "check", "--server", address, "--api-key", checkKey, "--seconds", "60")
	select {
	case <-sending:
	case <-time.After(testkit.Timeout):
		t.Fatal("no audio came")
	}
	p.signal(os.Interrupt)
	p.line("^ok +WebSocket opened")
	p.line("^skipped +audio accepted +interrupted$")
	p.ends(exitInterrupted)
}

// checkWith runs the program's check with variables in its environment, for
// proxies: Go reads those once, and never uses them for this machine.
func checkWith(t *testing.T, env []string, address string) string {
	t.Helper()
	skipShort(t)
	cmd := exec.Command(testProgram(t), "check", "--server", address, "--api-key", checkKey, "--seconds", "1")
	cmd.Env = append(os.Environ(), programEnv(append(env, "NO_PROXY=", "no_proxy=", "http_proxy=", "https_proxy=")...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || strings.Contains(string(out), checkKey) {
		t.Errorf("check with %v: %v\n%s", env, err, out)
	}
	return string(out)
}

// A proxy that knows only plain HTTP passes the operations but no WebSocket. The
// check distinguishes a proxy that does not run from a service that does not.
func TestCheckThroughAProxy(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(protocoltest.Service{}.Handler())
	t.Cleanup(service.Close)
	at := testkit.Must(url.Parse(service.URL))(t)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.Host = r.In.Host
		r.Out.Header.Del("Upgrade")
	},
		ModifyResponse: func(r *http.Response) error { r.Header.Set("Via", "1.1 old-proxy"); return nil }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)

	out := checkWith(t, []string{"HTTP_PROXY=" + proxy.URL}, "http://service.invalid")
	for _, want := range []string{"through the proxy " + strings.TrimPrefix(proxy.URL, "http://"), "ok       stream created",
		"failed   WebSocket opened", "cause: the proxy " + strings.TrimPrefix(proxy.URL, "http://") + " opens no tunnel", "allow CONNECT to this host and port"} {
		testkit.Contains(t, out, want)
	}
	for env, address := range map[string]string{"HTTP_PROXY": "http://service.invalid", "HTTPS_PROXY": "https://service.invalid"} {
		out := checkWith(t, []string{env + "=http://u:hidden@127.0.0.1:1"}, address)
		if !strings.Contains(out, "failed   TCP") || !strings.Contains(out, "cause: the proxy cannot be reached: 127.0.0.1:1 refuses") ||
			!strings.Contains(out, "NO_PROXY") || strings.Contains(out, "hidden") {
			t.Errorf("%s", out)
		}
	}
	out = checkWith(t, []string{"HTTPS_PROXY=" + proxy.URL}, "https://service.invalid")
	if !strings.Contains(out, "failed   TLS") || !strings.Contains(out, "opens no tunnel to service.invalid:443: it returned 403") {
		t.Errorf("%s", out)
	}
}

// TestCheckStrict: a notice is an error with --strict only.
func TestCheckStrict(t *testing.T) {
	t.Parallel()
	address := protocoltest.Serve(t, protocoltest.Service{
		Status: protocoltest.Respond(http.StatusOK, `{"id":"`+protocoltest.ID+`","status":"finished"}`),
	}.Handler())
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitOK, ""},
		{[]string{"--strict"}, exitFailed, `hubbub: the check has a notice at "`},
	} {
		_, stderr := inProcess(t, c.code, "", append([]string{"check", "--server", address, "--api-key", checkKey, "--seconds", "1"}, c.args...)...)
		if !strings.HasPrefix(stderr, c.want) || (stderr == "") != (c.want == "") {
			t.Errorf("%q: %s", c.args, stderr)
		}
	}
}

// TestCheckWithoutKey: without an API key the stages before that of the key run.
func TestCheckWithoutKey(t *testing.T) {
	t.Parallel()
	service := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("request: %s", r.URL) }))
	defer service.Close()
	p := start(t, "check", "--server", service.URL, "--insecure")
	p.ends(exitFailed)
	if !strings.Contains(p.output(), "ok       TCP") || !strings.Contains(p.output(), "cause: no API key for "+service.URL) ||
		!strings.Contains(p.errors(), "`hubbub config set-key "+service.URL+"`") {
		t.Errorf("%s%s", p.output(), p.errors())
	}
}

// TestCheckReady: a health check needs no key, and its exit code is the result.
func TestCheckReady(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s with %q", r.URL, r.Header.Get("Authorization"))
		}
		w.WriteHeader(int(status.Load()))
	}))
	defer service.Close()
	for _, c := range []struct{ status, code int }{{200, 0}, {503, 1}} {
		status.Store(int32(c.status))
		p := start(t, "check", "--ready", "--server", service.URL, "--insecure")
		if code := p.exit(); code != c.code || c.code == 1 && !strings.Contains(p.errors(), "503 Service Unavailable") {
			t.Errorf("status %d: exit code %d: %s", c.status, code, p.errors())
		}
	}
	start(t, "check", "--ready").ends(2)
}

// TestReportThatCannotBeWritten: the report of an earlier run remains, as on a full disk.
func TestReportThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.txt")
	testkit.NoError(t, os.WriteFile(path, []byte("earlier"), 0o600))
	full := errors.New("the disk is full")
	err := writeReport(path, func(w io.Writer) error { _, _ = w.Write([]byte("ne")); return full })
	if raw, _ := os.ReadFile(path); !errors.Is(err, full) || hint.Of(err) == "" || string(raw) != "earlier" {
		t.Errorf("%v, the file has %q", err, raw)
	}
	written := func(w io.Writer) error { _, _ = io.WriteString(w, "new"); return nil }
	testkit.NoError(t, writeReport(path, written))
	testkit.Equal(t, string(testkit.Must(os.ReadFile(path))(t)), "new", "the file")
	if _, err := os.Stat("/dev/full"); err == nil && writeReport("/dev/full", written) == nil {
		t.Error("an error that was not looked at is none")
	}
}
