package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/capture"
	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// Programs that others write know nothing of ours but the interface. Here their
// libraries stand for them: websockets of Python, ws of Node.js, and curl.

// foreign is a program of another language, with what it needs.
type foreign struct {
	program string
	env     []string
}

// find returns the first of some programs that succeeds with args. Without one
// the test is skipped, or fails where they are required.
func find(t *testing.T, what string, programs []string, env []string, args ...string) foreign {
	t.Helper()
	skipShort(t)
	for _, p := range programs {
		cmd := exec.Command(p, args...)
		cmd.Env = append(os.Environ(), env...)
		if cmd.Run() == nil {
			return foreign{p, env}
		}
	}
	if os.Getenv("HUBBUB_REQUIRE_CLIENTS") != "" {
		t.Fatalf("%s is not installed; make test installs it", what)
	}
	t.Skipf("%s is not installed; make test installs it", what)
	return foreign{}
}

func (f foreign) run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*testkit.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.program, args...)
	cmd.Env = append(append(os.Environ(), f.env...), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", f.program, args, err, out, errs.String())
	}
	return string(out)
}

// testService is a running server for clients of all kinds.
type testService struct{ url, ca, key string }

func newService(t *testing.T) testService {
	t.Helper()
	data := t.TempDir()
	key := strings.TrimSpace(start(t, "key", "create", "--account", "clients", "--data", data).line(`\.`))
	_, url := serve(t, "--data", data)
	return testService{url, filepath.Join(data, "ca.pem"), key}
}

// clientEnd is the last line of a client.
type clientEnd struct {
	ID     string
	Close  int
	Status string
}

// TestClients lets each of the clients stream the same nine seconds of the demo
// in real time, at once: all get the same turns, in order, a close with 1000,
// and find the results.
func TestClients(t *testing.T) {
	t.Parallel()
	curl := find(t, "curl", []string{"curl"}, nil, "--version")
	s := newService(t)
	audio := filepath.Join(t.TempDir(), "nine.f32")
	writeRaw(t, audio, enginetest.Demo(t)[:9*capture.SampleRate])
	said := make(chan string, 2)
	t.Run("streams", func(t *testing.T) {
		for _, c := range []struct {
			what, script string
			programs     []string
			env          []string
			test         string
		}{
			{"python3 with websockets", "stream.py", []string{"python3", "/usr/bin/python3"}, nil, "import websockets"},
			{"node with ws", "stream.js", []string{"node", "nodejs"}, []string{"NODE_PATH=" + os.Getenv("NODE_PATH") + ":/usr/share/nodejs:/usr/lib/node_modules"}, "require('ws')"},
		} {
			t.Run(c.script, func(t *testing.T) {
				t.Parallel()
				client := find(t, c.what, c.programs, c.env, map[string]string{"stream.py": "-c", "stream.js": "-e"}[c.script], c.test)
				out := client.run(t, []string{"API_KEY=" + s.key}, filepath.Join("testdata", "clients", c.script), s.url, s.ca, audio)
				said <- s.streamed(t, curl, out)
			})
		}
	})
	if len(said) == 2 {
		testkit.Equal(t, <-said, <-said, "the turns of the same audio")
	}
}

// streamed checks what a client printed, and what is kept of its stream. It
// returns the events.
func (s testService) streamed(t *testing.T, curl foreign, out string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var end clientEnd
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if end.Close != 1000 || end.Status != protocol.StatusDone {
		t.Errorf("ended with %+v", end)
	}
	lines = lines[:len(lines)-1]
	timeline, last := protocol.NewTimeline(), 0.0
	for _, l := range lines {
		e, err := protocol.ParseEvent([]byte(l))
		if err != nil || e.Type != protocol.TypeSpeakerStart && e.Type != protocol.TypeSpeakerEnd || e.Timestamp < last || e.Timestamp > 9 {
			t.Errorf("message %s after %g s: %v", l, last, err)
		}
		last = e.Timestamp
		timeline.Apply(e)
	}
	snap := timeline.Snapshot()
	turns := snap.Turns()
	if len(turns) < 2 || 2*len(turns) != len(lines) || turns[0].Speaker != "SPEAKER_00" || turns[1].Speaker != "SPEAKER_01" || snap.Counts.Degenerate != 0 {
		t.Errorf("turns %+v of %q", turns, lines)
	}
	var rttm bytes.Buffer
	testkit.NoError(t, protocol.WriteRTTM(&rttm, end.ID, turns))
	var at struct{ URL string }
	code, body := s.curl(t, curl, "POST", "/v1/media/output", "-d", `{"url":"media://live/`+end.ID+`/turns.rttm"}`)
	if err := json.Unmarshal([]byte(body), &at); err != nil || code != "201" {
		t.Fatalf("%s %s", code, body)
	}
	if got := curl.run(t, nil, "-sS", "--fail", "--cacert", s.ca, at.URL); got != rttm.String() {
		t.Errorf("turns.rttm is %q, the events say %q", got, rttm.String())
	}
	return strings.Join(lines, "\n")
}

// curl does one operation, with the key where there is one, and returns status
// and body.
func (s testService) curl(t *testing.T, curl foreign, method, path string, args ...string) (code, body string) {
	t.Helper()
	all := append([]string{"-sS", "--cacert", s.ca, "-X", method, "-w", "\n%{http_code}",
		"-H", "Content-Type: application/json"}, args...)
	if s.key != "" {
		all = append(all, "-H", "Authorization: Bearer "+s.key)
	}
	out := curl.run(t, nil, append(all, s.url+path)...)
	i := strings.LastIndexByte(out, '\n')
	return out[i+1:], strings.TrimSpace(out[:i])
}

// TestJobsClient lets a client written with Python's requests use the jobs as programs
// for such services do: every call, option, status, warning and error, and a webhook.
func TestJobsClient(t *testing.T) {
	t.Parallel()
	client := find(t, "python3 with requests", []string{"python3", "/usr/bin/python3"}, nil, "-c", "import requests")
	data, talk := t.TempDir(), filepath.Join(t.TempDir(), "talk.wav")
	writeWAV(t, talk, enginetest.Demo(t)[:8*capture.SampleRate])
	key := strings.TrimSpace(start(t, "key", "create", "--account", "clients", "--data", data).line(`\.`))
	secret := strings.TrimSpace(start(t, "key", "webhook", "--account", "clients", "--data", data).line(`.`))
	_, url := serve(t, "--data", data, "--webhook-to", "127.0.0.1", "--words", `sh -c "cat >/dev/null; echo good morning"`)
	out := client.run(t, []string{"API_KEY=" + key, "WEBHOOK_SECRET=" + secret}, filepath.Join("testdata", "clients", "jobs.py"), url, filepath.Join(data, "ca.pem"), talk)
	if !strings.HasSuffix(out, "ok\n") {
		t.Error(out)
	}
}

// TestCurl does every HTTP operation of the interface with curl, as its documentation
// would. What is wrong, and the headers, are rules of the contract (TestBuiltInConforms).
func TestCurl(t *testing.T) {
	t.Parallel()
	curl := find(t, "curl", []string{"curl"}, nil, "--version")
	s := newService(t)
	does := func(method, path, want string, fields []string, args ...string) map[string]any {
		t.Helper()
		code, body := s.curl(t, curl, method, path, args...)
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil || code != want {
			t.Fatalf("%s %s: %s %q, want %s: %v", method, path, code, body, want, err)
		}
		for _, f := range fields {
			if _, ok := got[f]; !ok {
				t.Errorf("%s %s has no %s: %s", method, path, f, body)
			}
		}
		return got
	}
	if got := does("GET", "/v1/test", "200", []string{"message"}); got["status"] != "OK" {
		t.Errorf("%v", got)
	}
	live := does("POST", "/v1/live", "200", []string{"id", "url"}, "-d", `{"room":"a"}`)
	id, _ := live["id"].(string)
	if got := does("GET", "/v1/live/"+id, "200", []string{"id", "startedAt", "completedAt", "input"}); got["status"] != "created" || got["id"] != id || got["input"].(map[string]any)["room"] != "a" {
		t.Errorf("%v", got)
	}
	does("POST", "/v1/live", "400", []string{"message", "errors"}, "-d", "[")
	does("GET", "/v1/nothing", "404", []string{"requestId", "message"})

	file := filepath.Join(t.TempDir(), "object")
	testkit.NoError(t, os.WriteFile(file, []byte("0123456789"), 0o600))
	in, _ := does("POST", "/v1/media/input", "201", []string{"url"}, "-d", `{"url":"media://a/b.txt"}`)["url"].(string)
	curl.run(t, nil, "-sS", "--fail", "--globoff", "--cacert", s.ca, "-T", file, in)
	out, _ := does("POST", "/v1/media/output", "201", []string{"url"}, "-d", `{"url":"media://a/b.txt"}`)["url"].(string)
	testkit.Equal(t, curl.run(t, nil, "-sS", "--fail", "--cacert", s.ca, out), "0123456789")
	testkit.Equal(t, curl.run(t, nil, "-sS", "--fail", "--cacert", s.ca, "-r", "2-4", out), "234", "a range")
	stranger := testService{url: s.url, ca: s.ca}
	for _, path := range []string{"/openapi.json", "/healthz", "/readyz"} {
		if code, body := stranger.curl(t, curl, "GET", path); code != "200" || !json.Valid([]byte(body)) {
			t.Errorf("%s: %s", path, code)
		}
	}
	if code, body := stranger.curl(t, curl, "GET", "/metrics"); code != "200" || !strings.Contains(body, "hubbub_streams_open 0") {
		t.Errorf("/metrics: %s %q", code, body)
	}
	// A server without TLS for who trusts the way is the same.
	_, url := serve(t, "--api-key", "k", "--tls", "off")
	testkit.Contains(t, curl.run(t, nil, "-sS", "--fail", "-H", "Authorization: Bearer k", url+"/v1/test"), `"OK"`)
}
