package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hubbub/capture"
)

// asHubbub makes the test binary behave as the program itself, so that tests
// can kill it, stop it, and put it into a terminal.
const asHubbub = "HUBBUB_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asHubbub) != "" {
		if file := os.Getenv(panicEnv); file != "" && os.Getenv(watcherEnv) == "" {
			place, file, _ := strings.Cut(file, ":")
			if place == "elsewhere" {
				go panicWhen(file)
			}
			provoke = func(here string) {
				if here == place && exists(file) {
					panic("a defect made for a test")
				}
			}
		}
		main()
	}
	// The settings of whoever runs the tests are not the tests'.
	if filepath.Base(os.Args[0]) != "hubbub" {
		_ = os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "hubbub-tests-have-no-settings"))
	}
	testscript.Main(m, map[string]func(){"hubbub": main})
}

// demoFile is the demo conversation as a file of the repo.
const demoFile = "../../capture/demo/demo.flac"

func TestScripts(t *testing.T) {
	demo, err := filepath.Abs(demoFile)
	if err != nil {
		t.Fatal(err)
	}
	wav, raw := demoCopies(t)
	short := filepath.Join(t.TempDir(), "short.wav")
	writeWAV(t, short, demoSamples(t)[:4*capture.SampleRate])
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("DEMO", demo)
			env.Setenv("DEMOWAV", wav)
			env.Setenv("DEMORAW", raw)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("SHORT", short)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "microphone" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			devices, err := capture.Devices(context.Background())
			return len(devices) > 0, err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exit-code": exitCode,
		},
	})
}

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

// demoSamples decodes the demo with the program's own reader.
func demoSamples(t testing.TB) []float32 {
	t.Helper()
	src, err := capture.Open(context.Background(), capture.Spec{Input: demoFile})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var all []float32
	buf := make([]float32, 16000)
	for {
		n, err := src.Read(context.Background(), buf)
		all = append(all, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// demoCopies writes the demo as a WAV file and as raw pcm_f32le.
func demoCopies(t *testing.T) (wav, raw string) {
	t.Helper()
	samples := demoSamples(t)
	dir := t.TempDir()
	wav, raw = filepath.Join(dir, "copy.wav"), filepath.Join(dir, "copy.raw")
	writeWAV(t, wav, samples)
	var b bytes.Buffer
	for _, s := range samples {
		_ = binary.Write(&b, binary.LittleEndian, math.Float32bits(s))
	}
	if err := os.WriteFile(raw, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return wav, raw
}

func writeWAV(t *testing.T, path string, samples []float32) {
	t.Helper()
	w, err := capture.CreateWAV(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(samples), w.Close()); err != nil {
		t.Fatal(err)
	}
}
