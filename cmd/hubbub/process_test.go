package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/protocol"
)

// patience is how long a test waits for what must happen; a busy machine is slow.
const patience = 60 * time.Second

// program is hubbub running as a process of its own.
type program struct {
	*exec.Cmd
	t      *testing.T
	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
	lines  chan string // of standard output; closed at its end
}

// start runs the program; it is killed at the end of the test at the latest.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{t: t, lines: make(chan string, 4096), Cmd: exec.Command(os.Args[0], args...)}
	p.Env = append(os.Environ(), asHubbub+"=1", "HUBBUB_SERVER=", "HUBBUB_API_KEY=")
	p.Cmd.Stderr = lockedWriter{&p.mu, &p.stderr}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		s := bufio.NewScanner(out)
		for s.Scan() {
			p.mu.Lock()
			fmt.Fprintln(&p.stdout, s.Text())
			p.mu.Unlock()
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-read
		_ = p.Cmd.Wait()
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("standard output of %v:\n%s\nstandard error:\n%s", args, p.stdout.String(), p.stderr.String())
		}
	})
	return p
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// line waits for the next line that matches, and fails the test without one.
func (p *program) line(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		select {
		case l, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("standard output ended without a line like %q", pattern)
			}
			if re.MatchString(l) {
				return l
			}
		case <-deadline:
			p.t.Fatalf("no line like %q in %v", pattern, patience)
		}
	}
}

// exit waits for the end of the program and returns its exit code.
func (p *program) exit() int {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case _, ok := <-p.lines:
			if ok {
				continue
			}
			_ = p.Cmd.Wait()
			return p.ProcessState.ExitCode()
		case <-deadline:
			p.t.Fatalf("the program did not end in %v", patience)
		}
	}
}

func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited %v in vain for %s", patience, what)
}

// TestKilledRecording kills the program with SIGKILL while it records: all
// three files are readable, and the audio lacks at most its last second.
func TestKilledRecording(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	began := time.Now()
	p := start(t, "live", "--input", demoFile, "--record", dir)
	p.line(`^00:00:`) // a turn has been written
	poll(t, "six seconds of audio", func() bool { return time.Since(began) > 6*time.Second })
	sent := recordedSeconds(t, filepath.Join(dir, "audio.wav"))
	time.Sleep(time.Second)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	lived := time.Since(began)
	p.exit()

	got := recordedSeconds(t, filepath.Join(dir, "audio.wav"))
	t.Logf("ran %.2f s, recorded %.2f s, readable a second before the end %.2f s", lived.Seconds(), got, sent)
	// The file grows as the clock does; what a busy start cost is in sent.
	if got < sent || got < 1 {
		t.Errorf("%.2f s are readable after the kill, %.2f s were before it", got, sent)
	}
	if behind := lived.Seconds() - got; behind > 4 {
		t.Errorf("the recording is %.2f s behind the life of the program", behind)
	}
	events, err := os.ReadFile(filepath.Join(dir, "events.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(strings.TrimSpace(string(events)), "\n") {
		if _, err := protocol.ParseEvent([]byte(l)); err != nil {
			t.Errorf("event %q: %v", l, err)
		}
	}
	f, err := os.Open(filepath.Join(dir, "turns.rttm"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if turns, err := protocol.ReadRTTM(f); err != nil || len(turns) == 0 {
		t.Errorf("%d turns are readable, error %v", len(turns), err)
	}
}

func recordedSeconds(t *testing.T, path string) float64 {
	t.Helper()
	src, err := capture.Open(context.Background(), capture.Spec{Input: path})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	total, buf := 0, make([]float32, 1600)
	for {
		n, err := src.Read(context.Background(), buf)
		total += n
		if err != nil {
			return float64(total) / capture.SampleRate
		}
	}
}

// TestInterrupt ends a running session with SIGINT: open turns are decided and
// printed, and the exit code is 130.
func TestInterrupt(t *testing.T) {
	p := start(t, "live", "--input", demoFile, "--output", "events")
	p.line(`speaker_start`)
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	starts := strings.Count(p.stdout.String(), protocol.TypeSpeakerStart)
	ends := strings.Count(p.stdout.String(), protocol.TypeSpeakerEnd)
	if starts == 0 || starts != ends {
		t.Errorf("%d starts and %d ends were printed", starts, ends)
	}
}

// TestServe uses the server as a remote service: over TLS with its own
// certificate, twice, then stops it with SIGTERM.
func TestServe(t *testing.T) {
	data := t.TempDir()
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--api-key", "first", "--api-key", "second", "--data", data)
	url := strings.TrimPrefix(server.line(`^ready `), "ready ")
	if !strings.HasPrefix(url, "https://127.0.0.1:") {
		t.Fatalf("ready line names %q", url)
	}

	client := start(t, "live", "--input", demoFile, "--server", url, "--api-key", "second", "--insecure", "--output", "json")
	first := client.line(`speaker`)
	var turn struct {
		Speaker    string
		Start, End float64
	}
	if err := json.Unmarshal([]byte(first), &turn); err != nil || turn.Speaker != "SPEAKER_00" || turn.End <= turn.Start {
		t.Errorf("first turn %q: %v", first, err)
	}

	trusting := start(t, "live", "--input", demoFile, "--server", url, "--api-key", "first", "--ca", filepath.Join(data, "ca.pem"), "--output", "json")
	trusting.line(`speaker`)

	untrusting := start(t, "live", "--input", demoFile, "--server", url, "--api-key", "first", "--output", "json")
	if code := untrusting.exit(); code != exitFailed {
		t.Errorf("without --insecure or --ca: exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(untrusting.stderr.String(), "--ca") {
		t.Errorf("the hint does not name --ca: %s", untrusting.stderr.String())
	}
	wrong := start(t, "live", "--input", demoFile, "--server", url, "--api-key", "third", "--insecure")
	if code := wrong.exit(); code != exitFailed || !strings.Contains(wrong.stderr.String(), "key") {
		t.Errorf("wrong key: exit code %d, standard error %q", code, wrong.stderr.String())
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
	if !strings.Contains(client.stderr.String(), "1001") {
		t.Errorf("the client does not name the close code: %s", client.stderr.String())
	}
	if code := trusting.exit(); code != exitFailed {
		t.Errorf("the other client exits with %d, want %d", code, exitFailed)
	}
}

// TestServePlain serves without TLS and answers curl's way of asking.
func TestServePlain(t *testing.T) {
	server := start(t, "serve", "--listen", "127.0.0.1:0", "--api-key", "k", "--tls", "off")
	url := strings.TrimPrefix(server.line(`^ready `), "ready ")
	if !strings.HasPrefix(url, "http://") {
		t.Fatalf("ready line names %q", url)
	}
	req, err := http.NewRequest(http.MethodGet, url+"/v1/test", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct{ Status string }
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || resp.StatusCode != 200 || body.Status != "OK" {
		t.Errorf("status %d, body %+v, error %v", resp.StatusCode, body, err)
	}
	second := start(t, "serve", "--listen", strings.TrimPrefix(url, "http://"), "--api-key", "k", "--tls", "off")
	if code := second.exit(); code != exitFailed {
		t.Errorf("a second server on the same port exits with %d", code)
	}
}
