package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hubbub/protocol/testkit"
)

// skipShort skips a test that starts programs with go test -short.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts programs")
	}
}

// programEnv is the environment of the program under test, beside that of the
// tests.
func programEnv(extra ...string) []string {
	return append(extra, asHubbub+"=1", "HUBBUB_SERVER=", "HUBBUB_API_KEY=")
}

// testProgram is this test binary, which runs as the program.
func testProgram(t *testing.T) string {
	t.Helper()
	return testkit.Must(os.Executable())(t)
}

// program is hubbub as a process of its own.
type program struct {
	*exec.Cmd
	t      *testing.T
	stdout testkit.Buffer
	stderr testkit.Buffer
	lines  chan string // of standard output; closed at its end
}

// start runs the program; the end of the test kills it.
func start(t *testing.T, args ...string) *program { return startWith(t, nil, args...) }

// startWith is start with more environment variables.
func startWith(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	return startProgram(t, testProgram(t), env, args...)
}

// startProgram is startWith for another build of the program.
func startProgram(t *testing.T, path string, env []string, args ...string) *program {
	t.Helper()
	skipShort(t)
	p := &program{t: t, lines: make(chan string, 4096), Cmd: exec.Command(path, args...)}
	p.Env = append(os.Environ(), programEnv(env...)...)
	p.Cmd.Dir = t.TempDir()
	p.Cmd.Stderr = &p.stderr
	out := testkit.Must(p.StdoutPipe())(t)
	testkit.Start(t, p.Cmd)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		s := bufio.NewScanner(out)
		for s.Scan() {
			fmt.Fprintln(&p.stdout, s.Text())
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-read
		_ = p.Cmd.Wait()
		if t.Failed() {
			t.Logf("standard output of %v:\n%s\nstandard error:\n%s", args, p.output(), p.errors())
		}
	})
	return p
}

// output is standard output so far.
func (p *program) output() string { return p.stdout.String() }

// errors is standard error so far.
func (p *program) errors() string { return p.stderr.String() }

// messages are the lines of standard output so far.
func (p *program) messages() []string { return strings.Split(strings.TrimSpace(p.output()), "\n") }

// says waits until a text is on standard error so many times.
func (p *program) says(text string, times int) {
	p.t.Helper()
	testkit.Eventually(p.t, text, func() bool { return strings.Count(p.errors(), text) >= times })
}

// stream waits for the id of the stream that the program sends.
func (p *program) stream() (id string) {
	p.t.Helper()
	testkit.Eventually(p.t, "the id of the stream", func() bool {
		_, rest, _ := strings.Cut(p.errors(), "hubbub watch ")
		id, _, _ = strings.Cut(rest, " ")
		return id != ""
	})
	return id
}

// line waits for the next line that matches, and fails the test without one.
func (p *program) line(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(testkit.Timeout)
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
			p.t.Fatalf("no line like %q in %v", pattern, testkit.Timeout)
		}
	}
}

// exit waits for the end of the program and returns its exit code.
func (p *program) exit() int {
	p.t.Helper()
	const limit = 3 * testkit.Timeout // a busy machine computes for a minute
	deadline := time.After(limit)
	for {
		select {
		case _, ok := <-p.lines:
			if ok {
				continue
			}
			_ = p.Cmd.Wait()
			return p.ProcessState.ExitCode()
		case <-deadline:
			p.t.Fatalf("the program did not end in %v", limit)
		}
	}
}

// ends waits for the end of the program, and checks its exit code and for texts on
// standard error.
func (p *program) ends(code int, texts ...string) {
	p.t.Helper()
	if got := p.exit(); got != code {
		p.t.Errorf("%v exits with %d, want %d", p.Args[1:], got, code)
	}
	for _, text := range texts {
		if !strings.Contains(p.errors(), text) {
			p.t.Errorf("%v does not say %q", p.Args[1:], text)
		}
	}
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	testkit.NoError(p.t, p.Process.Signal(s))
}

// serve runs hubbub serve on a free port and returns its address.
func serve(t *testing.T, args ...string) (server *program, url string) {
	t.Helper()
	server = start(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	return server, server.url()
}

// url waits until the program serves, and returns its address.
func (p *program) url() string {
	p.t.Helper()
	return strings.TrimPrefix(p.line("^ready "), "ready ")
}

// TestVersionOfGoBuild: what go build knows of the repository takes the place of what the Makefile sets.
func TestVersionOfGoBuild(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}
	if version, commit := builtFrom(info); version != "unknown" || commit != "unknown" {
		t.Errorf("without a repository: %s, %s", version, commit)
	}
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}}
	if version, commit := builtFrom(info); version != "v1.2.3" || commit != "0123456789ab" {
		t.Errorf("%s, %s", version, commit)
	}
}

// Tests run commands in their own process, several at the same time.
func TestCommandsShareNothing(t *testing.T) {
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { newRoot(&App{Stdout: io.Discard, Stderr: io.Discard}) })
	}
	all.Wait()
}

// TestOneInterrupt: timeout(1) sends two signals at once, which are one interrupt.
func TestOneInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a App
		second := 0
		a.onSecondInterrupt(func() bool { second++; return true })
		signals, done := make(chan os.Signal, 2), make(chan struct{})
		defer close(done)
		ctx, cancel := context.WithCancel(t.Context())
		go a.handle(signals, done, cancel)
		signals <- syscall.SIGTERM
		signals <- syscall.SIGTERM
		synctest.Wait()
		if ctx.Err() == nil || second != 0 {
			t.Errorf("interrupted %v, and %d times again", ctx.Err(), second)
		}
		time.Sleep(oneInterrupt)
		signals <- syscall.SIGTERM
		synctest.Wait()
		testkit.Equal(t, second, 1, "times that the second interrupt was handled")
	})
}

// TestInterruptWhileWaiting: a program that waits for what may never come, and has
// nothing to finish, ends with the first interrupt.
func TestInterruptWhileWaiting(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	for _, args := range [][]string{{"score", pipe, pipe}, {"voices", "import", pipe}} {
		p := start(t, args...)
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the program opens it, too
		testkit.NoError(t, err)
		p.signal(os.Interrupt)
		p.ends(exitInterrupted)
		w.Close()
	}
}
