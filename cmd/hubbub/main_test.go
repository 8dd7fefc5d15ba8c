package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
	"github.com/rogpeppe/go-internal/testscript"

	"hubbub/capture"
	"hubbub/capture/audiofile"
	"hubbub/capture/device"
	"hubbub/cmd/hubbub/internal/crash"
	"hubbub/localserver/engine/enginetest"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

// asHubbub makes the test binary run as the program itself, with its test hooks
// and, where the tests have it, the race detector. So the program of all process
// tests is built once.
const asHubbub = "HUBBUB_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asHubbub) != "" {
		setTestHook()
		main()
	}
	// The settings and the language of whoever runs the tests do not apply. With CI set, the colour library takes no
	// terminal for one.
	if filepath.Base(os.Args[0]) != "hubbub" {
		_ = os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "hubbub-tests-have-no-settings"))
		_ = errors.Join(os.Setenv("LC_ALL", "C.UTF-8"), os.Unsetenv("NO_COLOR"), os.Unsetenv("CI"))
		// Clients in other languages ask a proxy for addresses of this machine, too.
		_ = errors.Join(os.Setenv("NO_PROXY", "127.0.0.1"), os.Setenv("no_proxy", "127.0.0.1"))
		testkit.Parallel(8)
		if signal.Ignored(syscall.SIGHUP) { // programs would inherit that, as from tests under nohup
			signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		}
	}
	testscript.Main(m, map[string]func(){"hubbub": main})
}

// panicEnv names a place and a file, with a colon between: the program panics
// there when the file exists. The place "elsewhere" is a goroutine that nobody
// guards.
const panicEnv = "HUBBUB_TEST_PANIC"

func setTestHook() {
	place, file, ok := strings.Cut(os.Getenv(panicEnv), ":")
	if !ok || crash.IsMonitor() {
		return
	}
	if place == "elsewhere" {
		go panicWhen(file)
	}
	crash.TestHook = func(here string) {
		if here == place && exists(file) {
			panic("a defect made for a test")
		}
	}
}

// TestWhatToDo: what the system lacks comes before the hint of what was done.
func TestWhatToDo(t *testing.T) {
	failed := func(err error) error {
		return hint.Add(&os.PathError{Op: "open", Path: "x", Err: err}, "Choose another file.")
	}
	for err, want := range map[error]string{
		failed(syscall.EMFILE): "ulimit -n", failed(syscall.ENOSPC): "Free disk space", failed(syscall.EACCES): "Choose another file",
		&os.PathError{Err: syscall.EACCES}: "permissions", errors.New("x"): "",
	} {
		if got := whatToDo(err); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%v: %q", err, got)
		}
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	dir := t.TempDir()
	audio := map[string]string{"DEMO": demoFile(t)}
	for name, samples := range map[string][]float32{"TALK": talk(t), "SHORT": enginetest.Demo(t)[:4*capture.SampleRate], "SILENCE": make([]float32, 2*capture.SampleRate)} {
		audio[name] = filepath.Join(dir, strings.ToLower(name)+".wav")
		writeWAV(t, audio[name], samples)
	}
	audio["TALKRAW"] = filepath.Join(dir, "talk.f32")
	writeRaw(t, audio["TALKRAW"], talk(t))
	audio["FLAC24"] = filepath.Join(dir, "24kHz.flac")
	writeFLAC(t, audio["FLAC24"], 24000, enginetest.Demo(t)[:4*capture.SampleRate])
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			for name, path := range audio {
				env.Setenv(name, path)
			}
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("ESC", "\x1b")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "microphone" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			devices, err := device.List(context.Background())
			return len(devices) > 0, err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exit-code": exitCode,
			"quiet":     quiet,
		},
	})
}

// quiet demands an empty standard error. On a busy machine it may say that the program waits.
func quiet(ts *testscript.TestScript, _ bool, _ []string) {
	if text := withoutWait(ts.ReadFile("stderr")); text != "" {
		ts.Fatalf("standard error: %s", text)
	}
}

// withoutWait is a standard error without the notices of a busy machine: that connecting takes long, or what follows the end
// of the input.
func withoutWait(text string) string { return waitNotice.ReplaceAllString(text, "") }

var waitNotice = regexp.MustCompile(`(?m)^hubbub: (connecting to |the input has ended; waiting for |waiting for the words ).*\n`)

// exitCode runs a program and compares its exit code: exit-code CODE PROGRAM ARGS...
// Its output is for `stdout` and `stderr` as after exec.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if (got == want) == neg {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// demoFile is the path of the demo conversation: 78 s, four speakers.
func demoFile(t testing.TB) string {
	t.Helper()
	return testkit.Must(filepath.Abs("../../capture/demo/demo.flac"))(t)
}

// talk is a conversation of 21 s, spliced from the demo, for tests that wait for
// turns in real time: SPEAKER_00 and SPEAKER_01 take turns of about three seconds,
// SPEAKER_02 begins after twelve.
func talk(t testing.TB) []float32 {
	t.Helper()
	demo, pause := enginetest.Demo(t), make([]float32, capture.SampleRate/2)
	at := func(seconds float64) int { return int(seconds * capture.SampleRate) }
	samples := slices.Clone(pause)
	for _, turn := range [][2]float64{{0.9, 3.0}, {7.3, 10.0}, {18.2, 20.8}, {35.8, 38.5}, {49.1, 52.1}, {26.1, 29.8}} {
		samples = append(append(samples, demo[at(turn[0]):at(turn[1])]...), pause...)
	}
	return samples
}

// talkFile is a WAV file of the first seconds of talk, all of it for 0.
func talkFile(t *testing.T, seconds float64) string {
	t.Helper()
	samples := talk(t)
	if seconds > 0 {
		samples = samples[:int(seconds*capture.SampleRate)]
	}
	path := filepath.Join(t.TempDir(), "talk.wav")
	writeWAV(t, path, samples)
	return path
}

func writeWAV(t *testing.T, path string, samples []float32) {
	t.Helper()
	w := testkit.Must(audiofile.CreateWAV(path))(t)
	testkit.NoError(t, errors.Join(w.Write(samples), w.Close()))
}

// writeRaw writes samples as pcm_f32le.
func writeRaw(t *testing.T, path string, samples []float32) {
	t.Helper()
	testkit.NoError(t, os.WriteFile(path, protocol.AppendChunk(nil, samples), 0o600))
}

// writeFLAC writes samples as mono FLAC of a rate.
func writeFLAC(t *testing.T, path string, rate int, samples []float32) {
	t.Helper()
	file := testkit.Must(os.Create(path))(t)
	const block = 4096
	enc, err := flac.NewEncoder(file, &meta.StreamInfo{BlockSizeMin: block, BlockSizeMax: block, SampleRate: uint32(rate), NChannels: 1, BitsPerSample: 16})
	testkit.NoError(t, err)
	num := uint64(0)
	for part := range slices.Chunk(samples, block) {
		s := &frame.Subframe{SubHeader: frame.SubHeader{Pred: frame.PredVerbatim}, NSamples: len(part)}
		for _, v := range part {
			s.Samples = append(s.Samples, int32(v*32767))
		}
		f := &frame.Frame{Header: frame.Header{HasFixedBlockSize: true, BlockSize: uint16(len(part)), SampleRate: uint32(rate), Channels: frame.ChannelsMono, BitsPerSample: 16, Num: num},
			Subframes: []*frame.Subframe{s}}
		testkit.NoError(t, enc.WriteFrame(f))
		num++
	}
	testkit.NoError(t, enc.Close()) // closes the file, too
}
