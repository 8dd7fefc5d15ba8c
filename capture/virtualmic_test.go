//go:build cgo && linux

package capture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/capturetest"
	"hubbub/capture/device"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// The virtual microphone: audio is played to a null sink of PulseAudio, and
// PortAudio captures from a source that remaps its monitor, through ALSA. No sound
// card is needed, and only a temporary folder is used.

func init() { children["microphone"] = microphoneChild }

// captureReport is printed by the child at its end.
type captureReport struct {
	Error, Hint string
	Delay       float64 // s from the last chunk to the error
	Took        float64 // s from the first chunk to the last
	Captured    float64 // s
	Overflows   int64
	Notices     []string
}

// microphoneChild records the default microphone until it fails.
func microphoneChild() {
	report := func(v any) { _ = json.NewEncoder(os.Stdout).Encode(v) }
	devices, err := device.List(context.Background())
	if err != nil {
		report(err.Error())
		return
	}
	src, err := Open(context.Background(), Spec{Input: "mic"})
	if err != nil {
		report(fmt.Sprintf("%v: %v", err, devices))
		return
	}
	w, err := audiofile.CreateWAV(os.Getenv("HUBBUB_CAPTURE_PATH"))
	if err != nil {
		report(err.Error())
		return
	}
	var first, last time.Time
	buf, captured := make([]float32, ChunkSamples), 0
	for err == nil {
		var n int
		if n, err = src.Read(context.Background(), buf); n == 0 {
			continue
		}
		_ = w.Write(buf[:n])
		captured += n
		if last = time.Now(); first.IsZero() {
			first = last
			report(src.Info()) // it runs: the test may play audio
		}
	}
	delay := time.Since(last)
	_, _ = w.Close(), src.Close()
	report(captureReport{Error: fmt.Sprint(err), Hint: hint.Of(err), Delay: delay.Seconds(), Took: last.Sub(first).Seconds(), Captured: float64(captured) / SampleRate,
		Overflows: src.(*microphone).overflows(), Notices: src.Notices()})
}

// TestVirtualMicrophone plays bursts of known tones to a real device, captures
// them through PortAudio in real time, then kills the sound server: the loss is
// reported in time, and the recording so far is complete.
func TestVirtualMicrophone(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "paplay", "pactl")
	server := capturetest.SoundServer(t)
	dir := t.TempDir()
	recording, played := filepath.Join(dir, "captured.wav"), filepath.Join(dir, "played.wav")
	r := startRecorder(t, server.Env(), recording)

	// Bursts of 0.2 s every 0.4 s, each at a pitch of its own.
	var pitches []float64
	var x []float32
	for f := 400.0; f <= 1600; f += 200 {
		pitches = append(pitches, f)
		x = append(x, capturetest.Tone(SampleRate, f, SampleRate/5)...)
		x = append(x, make([]float32, SampleRate/5)...)
	}
	w := testkit.Must(audiofile.CreateWAV(played))(t)
	testkit.NoError(t, w.Write(x))
	testkit.NoError(t, w.Close())
	server.Run(t, "paplay", "--device=mic", played)
	time.Sleep(1500 * time.Millisecond) // until the device has delivered it

	testkit.NoError(t, server.Process.Kill())
	report := r.loss()
	if err := r.child.Wait(); err != nil {
		t.Errorf("the recorder ended with %v", err)
	}
	testkit.Equal(t, r.stderr.String(), "", "on standard error")

	src := testkit.Must(Open(context.Background(), Spec{Input: recording}))(t)
	defer src.Close()
	captured := readAll(t, src, ChunkSamples)
	if d := math.Abs(float64(len(captured))/SampleRate - report.Captured); d > 0.11 {
		t.Errorf("%.2f s captured, %.2f s recorded", report.Captured, float64(len(captured))/SampleRate)
	}
	// In real time, by the capture times of the first and the last chunk.
	if ratio := (report.Captured - 0.1) / report.Took; ratio < 0.6 || ratio > 1.3 {
		t.Errorf("%.2f s of audio came in %.2f s", report.Captured, report.Took)
	}
	checkBursts(t, captured, pitches)
}

// TestLastMicrophoneRemoved: the sound server gives the default device what the machine plays.
// That is the end of the device.
func TestLastMicrophoneRemoved(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "paplay", "pactl")
	server := capturetest.SoundServer(t)
	r := startRecorder(t, server.Env(), filepath.Join(t.TempDir(), "captured.wav"))
	time.Sleep(time.Second) // until it knows that there is one
	server.Run(t, "pactl", "load-module", "module-rescue-streams")
	server.Run(t, "pactl", "unload-module", "module-remap-source")
	if report := r.loss(); !strings.Contains(report.Error, "no microphone any more") {
		t.Errorf("%+v", report)
	}
	if err := r.child.Wait(); err != nil {
		t.Errorf("the recorder ended with %v", err)
	}
}

// followingDevice is a device of the sound server that has recorded a microphone of it.
type followingDevice struct{ *fakeDevice }

func (followingDevice) Source() string { return "Headset" }

// TestLastMicrophoneStalls: a device that stalled, because its microphone was removed, is not reopened as what the machine
// plays, but when there is a microphone again.
func TestLastMicrophoneStalls(t *testing.T) {
	dir := capturetest.Programs(t, map[string]string{"pactl": `here=${0%/*}
[ -e "$here/connected" ] || { echo >> "$here/asked"; printf 'Source #0\n\tMonitor of Sink: out\n'; exit; }
` + capturetest.Pactl})
	var opened atomic.Int32
	d := newReopener(openWith(t, "", Mic, elapsed, opener(func(string) device.Stream {
		opened.Add(1)
		return followingDevice{&fakeDevice{rate: SampleRate, channels: 1}}
	})))
	d.lose(errors.New("stalled"))
	defer d.stopReopening()
	for asked := 0; asked < 2; time.Sleep(10 * time.Millisecond) {
		raw, _ := os.ReadFile(filepath.Join(dir, "asked"))
		asked = len(raw)
		if n := opened.Load(); n != 1 {
			t.Fatalf("%d devices were opened", n)
		}
	}
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "connected"), nil, 0o600))
	_ = (<-d.found).Close()
}

// TestSoundServerThatHangs stops the sound server with SIGSTOP: reads do not
// return. The stall is reported, and the recording so far is complete.
func TestSoundServerThatHangs(t *testing.T) {
	t.Parallel()
	capturetest.Need(t, "pulseaudio", "pactl")
	server := capturetest.SoundServer(t)
	recording := filepath.Join(t.TempDir(), "captured.wav")
	r := startRecorder(t, server.Env(), recording)
	time.Sleep(500 * time.Millisecond)
	testkit.NoError(t, server.Process.Signal(syscall.SIGSTOP))
	report := r.loss()
	if err := r.child.Wait(); err != nil {
		t.Errorf("the recorder ended with %v", err)
	}
	testkit.Equal(t, r.stderr.String(), "", "on standard error")
	testkit.Contains(t, report.Error, "stopped delivering audio")
	src := testkit.Must(Open(context.Background(), Spec{Input: recording}))(t)
	defer src.Close()
	if n := float64(len(readAll(t, src, ChunkSamples))) / SampleRate; math.Abs(n-report.Captured) > 0.11 {
		t.Errorf("%.2f s captured, %.2f s recorded", report.Captured, n)
	}
}

// recordingChild is a process that records the virtual microphone.
type recordingChild struct {
	t      *testing.T
	child  *exec.Cmd
	lines  *bufio.Scanner
	stderr *testkit.Buffer
	info   Info
}

// startRecorder returns once the first chunk was captured.
func startRecorder(t *testing.T, env []string, path string) *recordingChild {
	t.Helper()
	r := &recordingChild{t: t, child: exec.Command(os.Args[0]), stderr: &testkit.Buffer{}}
	r.child.Env = append(env, asChild+"=microphone", "HUBBUB_CAPTURE_PATH="+path)
	r.child.Stderr = r.stderr
	out := testkit.Must(r.child.StdoutPipe())(t)
	testkit.Start(t, r.child)
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

// loss waits until the recorder reports that its device is gone.
func (r *recordingChild) loss() captureReport {
	r.t.Helper()
	gone := time.Now()
	if !r.lines.Scan() {
		r.t.Fatalf("the recorder does not notice that its device is gone, or died\n%s", r.stderr.String())
	}
	delay := time.Since(gone)
	var report captureReport
	if err := json.Unmarshal(r.lines.Bytes(), &report); err != nil {
		r.t.Fatalf("%v: %s", err, r.lines.Text())
	}
	r.t.Logf("%s at %d Hz; the loss was reported after %.2f s", r.info.Name, r.info.Rate, report.Delay)
	r.t.Logf("%+v", report)
	if delay > 20*time.Second { // 2 s and Close, with time for a busy machine
		r.t.Errorf("the loss was reported after %v", delay)
	}
	if !strings.Contains(report.Error, "microphone") || report.Hint == "" || strings.Contains(report.Error, "\n") {
		r.t.Errorf("%q, hint %q", report.Error, report.Hint)
	}
	return report
}

// checkBursts checks order, frequency and distance of the bursts.
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
		t.Errorf("%d bursts, want %d", len(starts), len(pitches))
		return
	}
	for k, i := range starts {
		if i+SampleRate/10 > len(x) {
			t.Errorf("burst %d is cut", k)
			continue
		}
		at, rest := capturetest.Power(x[i+step:i+SampleRate/10], SampleRate, pitches[k])
		if capturetest.DB(rest/at) > -20 {
			t.Errorf("burst %d is not %.0f Hz: the rest is at %.1f dB", k, pitches[k], capturetest.DB(rest/at))
		}
		if k > 0 {
			if d := float64(i-starts[k-1]) / SampleRate; math.Abs(d-0.4) > 0.03 {
				t.Errorf("burst %d comes %.3f s after the one before, want 0.4", k, d)
			}
		}
	}
}
