// Package capturetest has a virtual microphone for tests. No sound card is needed,
// and only a temporary folder is used.
package capturetest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

// Need skips the test if a program is missing, or fails it if
// HUBBUB_REQUIRE_AUDIO is set.
func Need(t *testing.T, programs ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("HUBBUB_REQUIRE_AUDIO") == "1" {
				t.Fatalf("%s is missing, and HUBBUB_REQUIRE_AUDIO=1 asks for this test: run `make test`, which installs it", p)
			}
			t.Skipf("%s is missing: `make test` installs what this test needs", p)
		}
	}
}

// NeedReopening skips the test in a build with -race that does not come from `make test`: the portaudio package passes
// the number of a stream as a pointer, which -race rejects from the second stream on unless checkptr is off for it.
func NeedReopening(t *testing.T) {
	t.Helper()
	info, _ := debug.ReadBuildInfo()
	if os.Getenv("HUBBUB_REQUIRE_AUDIO") != "1" && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("opens a second PortAudio stream with -race: `make test` switches checkptr off")
	}
}

// Server is a sound server with the virtual microphone "virtmic", which records what is
// played to the sink "mic".
type Server struct {
	*exec.Cmd
	stop func()
	// Vars are the variables of the environment with which programs find it.
	Vars []string
}

// Stop kills the server, which ends its clients.
func (s *Server) Stop() { s.stop() }

// Env is the environment of a program that uses only this server.
func (s *Server) Env() (env []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "PULSE_") && !strings.HasPrefix(e, "ALSA_") && !strings.HasPrefix(e, "XDG_") && !strings.HasPrefix(e, "PIPEWIRE_") && !strings.HasPrefix(e, "DBUS_") && !strings.HasPrefix(e, "HOME=") {
			env = append(env, e)
		}
	}
	return append(env, s.Vars...)
}

// Use makes the test a client of the server.
func (s *Server) Use(t *testing.T) {
	for _, v := range s.Vars {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

// Command is a client of the server.
func (s *Server) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = s.Env()
	return cmd
}

// Run runs a client of the server and returns what it writes.
func (s *Server) Run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := s.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// SoundServer starts a PulseAudio in a temporary folder; the end of the test kills it.
func SoundServer(t *testing.T) *Server {
	t.Helper()
	dir := folder(t, map[string]string{
		".asoundrc":   "pcm.!default { type pulse }\nctl.!default { type pulse }\n",
		"client.conf": "autospawn = no\nenable-shm = no\n",
	})
	s := &Server{Vars: []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "PULSE_CLIENTCONFIG=" + filepath.Join(dir, "client.conf")}}
	s.Cmd = s.Command("pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--realtime=no", "--high-priority=no", "--disable-shm=yes",
		"-L", "module-native-protocol-unix",
		"-L", "module-null-sink sink_name=mic rate=16000 channels=1",
		"-L", "module-remap-source master=mic.monitor source_name=virtmic")
	s.start(t, func() { _ = s.Process.Kill() }, func() bool {
		out, err := s.Command("pactl", "list", "short", "sources").Output()
		return err == nil && strings.Contains(string(out), "virtmic")
	})
	return s
}

// folder makes a temporary folder with files, whose path is short, because it contains sockets.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := testkit.ShortTempDir(t)
	for name, text := range files {
		path := filepath.Join(dir, name)
		testkit.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	return dir
}

// start starts the server, which the end of the test kills, and waits until it is ready.
func (s *Server) start(t *testing.T, kill func(), ready func() bool) {
	t.Helper()
	var output bytes.Buffer
	s.Stdout, s.Stderr = &output, &output
	testkit.Start(t, s.Cmd)
	s.stop = sync.OnceFunc(func() {
		kill()
		_ = s.Wait()
	})
	t.Cleanup(s.stop)
	for deadline := time.Now().Add(60 * time.Second); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.stop()
			t.Fatalf("%s does not start:\n%s", s.Args[0], output.String())
		}
	}
}
