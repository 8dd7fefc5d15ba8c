//go:build cgo && linux

package capture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The virtual microphone: PulseAudio's null sink is what is played to, a source
// made of its monitor is what PortAudio captures from, through ALSA. No sound
// card takes part, and nothing outside a temporary folder is touched.

func init() { children["microphone"] = microphoneChild }

// heardReport is what the child says at its end.
type heardReport struct {
	Error, Hint        string
	Told               float64 // s from the last chunk to the error
	Took               float64 // s from the first chunk to the last
	Heard              float64 // s
	Dropped, Overflows int64
	Notices            []string
	Log                int
}

// microphoneChild records the default microphone until it fails.
func microphoneChild() {
	say := func(v any) { _ = json.NewEncoder(os.Stdout).Encode(v) }
	devices, err := Devices(context.Background())
	if err != nil {
		say(err.Error())
		return
	}
	src, err := Open(context.Background(), Spec{Input: "mic"})
	if err != nil {
		say(fmt.Sprintf("%v: %v\n%s", err, devices, NativeLog()))
		return
	}
	w, err := CreateWAV(os.Getenv("HUBBUB_CAPTURE_PATH"))
	if err != nil {
		say(err.Error())
		return
	}
	var first, last time.Time
	s := Start(context.Background(), src, StreamOptions{Tap: func(c Chunk) { _ = w.Write(c.Samples[:c.Valid]) }})
	for c := range s.Chunks() {
		if last = c.Captured; first.IsZero() {
			first = last
			say(src.Info()) // it runs: sound may begin
		}
	}
	told := time.Since(last)
	_ = w.Close()
	st := s.Stats()
	say(heardReport{Error: fmt.Sprint(s.Err()), Hint: hint(s.Err()), Told: told.Seconds(), Took: last.Sub(first).Seconds(), Heard: st.Heard.Seconds(),
		Dropped: st.Dropped, Overflows: st.Overflows, Notices: st.Notices, Log: len(NativeLog())})
}

// need skips the test where a program is missing, or fails it where the tests
// were promised one.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("HUBBUB_REQUIRE_AUDIO") == "1" {
				t.Fatalf("%s is missing, and HUBBUB_REQUIRE_AUDIO=1 asks for this test: run `make test`, which installs it", p)
			}
			t.Skipf("%s is missing: `make test` installs what this test needs", p)
		}
	}
}

// soundServer starts PulseAudio with a virtual microphone in a folder of its
// own, and gives the environment in which programs find it.
func soundServer(t *testing.T) (env []string, server *os.Process) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hubbub") // short: a socket's path goes into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{
		".asoundrc":   "pcm.!default { type pulse }\nctl.!default { type pulse }\n",
		"client.conf": "autospawn = no\nenable-shm = no\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "PULSE_") && !strings.HasPrefix(e, "ALSA_") && !strings.HasPrefix(e, "XDG_") && !strings.HasPrefix(e, "HOME=") {
			env = append(env, e)
		}
	}
	env = append(env, "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "PULSE_CLIENTCONFIG="+filepath.Join(dir, "client.conf"))
	cmd := exec.Command("pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--realtime=no", "--high-priority=no", "--disable-shm=yes",
		"-L", "module-native-protocol-unix",
		"-L", "module-null-sink sink_name=mic rate=16000 channels=1",
		"-L", "module-remap-source master=mic.monitor source_name=virtmic")
	cmd.Env = env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	deadline := time.Now().Add(60 * time.Second)
	for {
		probe := exec.Command("pactl", "list", "short", "sources")
		probe.Env = env
		if out, err := probe.Output(); err == nil && strings.Contains(string(out), "virtmic") {
			return env, cmd.Process
		}
		if time.Now().After(deadline) {
			t.Fatalf("PulseAudio does not start:\n%s", said.String())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestVirtualMicrophone plays bursts of known tones to a real device, captures
// them through PortAudio in real time, then takes the sound server away: the
// loss is told in time, and the recording so far is whole.
func TestVirtualMicrophone(t *testing.T) {
	need(t, "pulseaudio", "paplay", "pactl")
	if testing.Short() {
		t.Skip("it takes 8 s")
	}
	env, server := soundServer(t)

	dir := t.TempDir()
	recording, played := filepath.Join(dir, "heard.wav"), filepath.Join(dir, "played.wav")
	r := startRecorder(t, env, recording)

	// Bursts of 0.2 s every 0.4 s, each at a pitch of its own.
	var pitches []float64
	var x []float32
	for f := 400.0; f <= 1600; f += 200 {
		pitches = append(pitches, f)
		x = append(x, tone(SampleRate, f, SampleRate/5)...)
		x = append(x, make([]float32, SampleRate/5)...)
	}
	w, err := CreateWAV(played)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(x); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	player := exec.Command("paplay", "--device=mic", played)
	player.Env = env
	if msg, err := player.CombinedOutput(); err != nil {
		t.Fatalf("paplay: %v\n%s", err, msg)
	}
	time.Sleep(1500 * time.Millisecond) // what was played is on its way

	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	report := r.loss()
	if err := r.child.Wait(); err != nil {
		t.Errorf("the recorder ended with %v", err)
	}
	if r.screen.Len() > 0 {
		t.Errorf("on the screen: %s", r.screen.String())
	}

	src, err := Open(context.Background(), Spec{Input: recording})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	heard := readAll(t, src, ChunkSamples)
	if d := math.Abs(float64(len(heard))/SampleRate - report.Heard); d > 0.11 {
		t.Errorf("%.2f s heard, %.2f s recorded", report.Heard, float64(len(heard))/SampleRate)
	}
	// In real time: neither much faster nor slower than the clock, by the
	// times at which the first and the last chunk came.
	if ratio := (report.Heard - 0.1) / report.Took; ratio < 0.6 || ratio > 1.3 {
		t.Errorf("%.2f s of audio came in %.2f s", report.Heard, report.Took)
	}
	checkBursts(t, heard, pitches)
}

// TestSoundServerThatHangs stops the sound server in the middle: nothing fails,
// nothing comes, and the read never returns. It is told all the same, and the
// recording so far is whole.
func TestSoundServerThatHangs(t *testing.T) {
	need(t, "pulseaudio", "pactl")
	if testing.Short() {
		t.Skip("it takes 5 s")
	}
	env, server := soundServer(t)
	recording := filepath.Join(t.TempDir(), "heard.wav")
	r := startRecorder(t, env, recording)
	time.Sleep(500 * time.Millisecond)
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	report := r.loss()
	if err := r.child.Wait(); err != nil {
		t.Errorf("the recorder ended with %v", err)
	}
	if r.screen.Len() > 0 {
		t.Errorf("on the screen: %s", r.screen.String())
	}
	if !strings.Contains(report.Error, "stopped giving audio") {
		t.Errorf("%q", report.Error)
	}
	src, err := Open(context.Background(), Spec{Input: recording})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if n := float64(len(readAll(t, src, ChunkSamples))) / SampleRate; math.Abs(n-report.Heard) > 0.11 {
		t.Errorf("%.2f s heard, %.2f s recorded", report.Heard, n)
	}
}

// recorder is a process that records the virtual microphone.
type recorder struct {
	t      *testing.T
	child  *exec.Cmd
	lines  *bufio.Scanner
	screen *bytes.Buffer // what came to its standard error
	info   Info
}

// startRecorder returns once the first chunk was captured.
func startRecorder(t *testing.T, env []string, path string) *recorder {
	t.Helper()
	r := &recorder{t: t, child: exec.Command(os.Args[0]), screen: &bytes.Buffer{}}
	r.child.Env = append(env, asChild+"=microphone", "HUBBUB_CAPTURE_PATH="+path)
	r.child.Stderr = r.screen
	out, err := r.child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.child.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(90*time.Second, func() { _ = r.child.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		_ = r.child.Process.Kill()
	})
	r.lines = bufio.NewScanner(out)
	r.lines.Buffer(nil, 1<<20)
	if !r.lines.Scan() || json.Unmarshal(r.lines.Bytes(), &r.info) != nil || r.info.Kind != Mic {
		t.Fatalf("the microphone does not open: %s", r.lines.Text())
	}
	return r
}

// loss waits until the recorder says that its device is gone.
func (r *recorder) loss() heardReport {
	r.t.Helper()
	gone := time.Now()
	if !r.lines.Scan() {
		r.t.Fatalf("the recorder does not notice that its device is gone, or died\n%s", r.screen.String())
	}
	told := time.Since(gone)
	var report heardReport
	if err := json.Unmarshal(r.lines.Bytes(), &report); err != nil {
		r.t.Fatalf("%v: %s", err, r.lines.Text())
	}
	r.t.Logf("%s at %d Hz; the loss was told after %.2f s", r.info.Name, r.info.Rate, report.Told)
	r.t.Logf("%+v", report)
	if told > 20*time.Second { // 2 s, then Close, on a machine that has time for it
		r.t.Errorf("the loss was told after %v", told)
	}
	if !strings.Contains(report.Error, "microphone") || report.Hint == "" || strings.Contains(report.Error, "\n") {
		r.t.Errorf("%q, hint %q", report.Error, report.Hint)
	}
	return report
}

// checkBursts finds the bursts in order, at their pitch and their distance.
func checkBursts(t *testing.T, x []float32, pitches []float64) {
	t.Helper()
	const step = SampleRate / 100
	var starts []int
	for i := step; i+step <= len(x); i += step {
		if measure(x[i:i+step]).RMS > 0.1 && measure(x[i-step:i]).RMS <= 0.1 {
			if n := len(starts); n == 0 || i-starts[n-1] > SampleRate/4 {
				starts = append(starts, i)
			}
		}
	}
	if len(starts) != len(pitches) {
		t.Errorf("%d bursts were heard, want %d", len(starts), len(pitches))
		return
	}
	for k, i := range starts {
		if i+SampleRate/10 > len(x) {
			t.Errorf("burst %d is cut", k)
			continue
		}
		at, rest := power(x[i+step:i+SampleRate/10], SampleRate, pitches[k])
		if db(rest/at) > -20 {
			t.Errorf("burst %d is not %.0f Hz: the rest is at %.1f dB", k, pitches[k], db(rest/at))
		}
		if k > 0 {
			if d := float64(i-starts[k-1]) / SampleRate; math.Abs(d-0.4) > 0.03 {
				t.Errorf("burst %d comes %.3f s after the one before, want 0.4", k, d)
			}
		}
	}
}
