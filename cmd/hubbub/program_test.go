package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// timeout is how long a test waits for what must happen; a busy machine is slow.
const timeout = 60 * time.Second

// poll waits until ok.
func poll(t *testing.T, what string, every time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(every) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited %v in vain for %s", timeout, what)
}

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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// program is hubbub as a process of its own.
type program struct {
	*exec.Cmd
	t      *testing.T
	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
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
			t.Logf("standard output of %v:\n%s\nstandard error:\n%s", args, p.output(), p.errors())
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

// output is standard output so far.
func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// errors is standard error so far.
func (p *program) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// messages are the lines of standard output so far.
func (p *program) messages() []string { return strings.Split(strings.TrimSpace(p.output()), "\n") }

// says waits until a text is on standard error so many times.
func (p *program) says(text string, times int) {
	p.t.Helper()
	poll(p.t, text, 10*time.Millisecond, func() bool { return strings.Count(p.errors(), text) >= times })
}

// stream waits for the id of the stream that the program sends.
func (p *program) stream() (id string) {
	p.t.Helper()
	poll(p.t, "the id of the stream", 10*time.Millisecond, func() bool {
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
	deadline := time.After(timeout)
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
			p.t.Fatalf("no line like %q in %v", pattern, timeout)
		}
	}
}

// exit waits for the end of the program and returns its exit code.
func (p *program) exit() int {
	p.t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case _, ok := <-p.lines:
			if ok {
				continue
			}
			_ = p.Cmd.Wait()
			return p.ProcessState.ExitCode()
		case <-deadline:
			p.t.Fatalf("the program did not end in %v", timeout)
		}
	}
}

// startServer runs hubbub serve with TLS, the key k and a data folder, and
// returns its address.
func startServer(t *testing.T, data, listen string) (server *program, url string) {
	t.Helper()
	server = start(t, "serve", "--listen", listen, "--api-key", "k", "--data", data)
	return server, strings.TrimPrefix(server.line(`^ready `), "ready ")
}

// terminal is tmux with the program in it. Every terminal is a server of its own.
type terminal struct {
	t      *testing.T
	dir    string // of the program
	socket string
	exit   string // file for the program's exit code
}

// inTerminal runs the program in a terminal of w by h cells.
func inTerminal(t *testing.T, w, h int, args ...string) *terminal {
	t.Helper()
	return inTerminalWith(t, w, h, nil, args...)
}

// inTerminalWith is inTerminal with more environment variables.
func inTerminalWith(t *testing.T, w, h int, env []string, args ...string) *terminal {
	t.Helper()
	skipShort(t)
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("HUBBUB_REQUIRE_TMUX") != "" {
			t.Fatal("tmux is not installed; make test installs it")
		}
		t.Skip("tmux is not installed; make test installs it")
	}
	dir := t.TempDir()
	x := &terminal{t: t, dir: filepath.Join(dir, "work"), socket: filepath.Join(dir, "tmux"), exit: filepath.Join(dir, "exit")}
	if err := os.Mkdir(x.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, word := range slices.Concat([]string{"env"}, programEnv(env...), []string{testProgram(t)}, args) {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	command := fmt.Sprintf("trap : INT; %s; echo $? >'%s'; cat", strings.Join(words, " "), x.exit)
	x.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), "-c", x.dir, "sh", "-c", command)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", x.screen())
		}
		_ = exec.Command("tmux", "-S", x.socket, "kill-server").Run()
	})
	return x
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// keys presses keys, by their tmux names.
func (x *terminal) keys(keys ...string) { x.tmux(append([]string{"send-keys"}, keys...)...) }

// types enters a text.
func (x *terminal) types(text string) { x.tmux("send-keys", "-l", text) }

func (x *terminal) screen() string { return x.tmux("capture-pane", "-p") }

// shows waits until each pattern is on the screen.
func (x *terminal) shows(patterns ...string) (screen string) {
	x.t.Helper()
	for _, p := range patterns {
		re := regexp.MustCompile("(?m)" + p)
		poll(x.t, "a screen with "+p, 50*time.Millisecond, func() bool {
			screen = x.screen()
			return re.MatchString(screen)
		})
	}
	return screen
}

// exitCode waits for the program's end.
func (x *terminal) exitCode() string {
	x.t.Helper()
	var code []byte
	poll(x.t, "the end of the program", 20*time.Millisecond, func() bool {
		code, _ = os.ReadFile(x.exit)
		return len(code) > 0
	})
	return strings.TrimSpace(string(code))
}

// sane checks that the terminal is as a shell needs it: what is typed is echoed
// and arrives line by line.
func (x *terminal) sane() {
	x.t.Helper()
	poll(x.t, "the normal screen and a cursor", 50*time.Millisecond, func() bool {
		return strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}")) == "0 1 0"
	})
	x.exitCode()
	// The terminal echoes the line, and cat, which runs now, prints it again.
	poll(x.t, "typed text", 50*time.Millisecond, func() bool {
		x.keys("typed", "Enter")
		time.Sleep(50 * time.Millisecond)
		return strings.Count(x.screen(), "typed\n") >= 2
	})
}

// As with `hubbub version | head -0`.
func TestStdoutClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_ = r.Close()
	var stderr bytes.Buffer
	app := &App{Args: []string{"version"}, Stdin: os.Stdin, Stdout: w, Stderr: &stderr}
	if code := app.Main(); code != exitInterrupted || stderr.Len() > 0 {
		t.Errorf("exit code %d, standard error %q", code, &stderr)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != exitInterrupted {
			t.Errorf("%v: exit code %d, want %d", args, code, exitInterrupted)
		}
		w.Close()
	}
}
