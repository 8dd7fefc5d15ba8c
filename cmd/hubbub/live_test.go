package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// TestKilledRecording kills the program with SIGKILL while it records: all
// three files are readable, and the audio lacks at most its last second.
func TestKilledRecording(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "rec")
	audio := filepath.Join(dir, recording.AudioFile)
	p := start(t, "live", "--input", talkFile(t, 0), "--record", dir)
	testkit.Eventually(t, "the recording", func() bool { return exists(audio) })
	began := time.Now()
	p.line(`^00:00:`) // a turn has been written
	before := recordedSeconds(t, audio)
	time.Sleep(time.Second)
	p.signal(os.Kill)
	lived := time.Since(began)
	p.exit()

	got := recordedSeconds(t, audio)
	t.Logf("recorded for %.2f s, readable %.2f s, a second before the end %.2f s", lived.Seconds(), got, before)
	if got < before || got < 1 {
		t.Errorf("%.2f s are readable after the kill, %.2f s were before it", got, before)
	}
	if behind := lived.Seconds() - got; behind > 4 {
		t.Errorf("the recording is %.2f s behind", behind)
	}
	events, err := os.ReadFile(filepath.Join(dir, recording.EventsFile))
	testkit.NoError(t, err)
	for _, l := range strings.Split(strings.TrimSpace(string(events)), "\n") {
		if _, err := protocol.ParseEvent([]byte(l)); err != nil {
			t.Errorf("event %q: %v", l, err)
		}
	}
	f, err := os.Open(filepath.Join(dir, recording.TurnsFile))
	testkit.NoError(t, err)
	defer f.Close()
	if turns, err := protocol.ReadRTTM(f); err != nil || len(turns) == 0 {
		t.Errorf("%d turns are readable, error %v", len(turns), err)
	}
}

func recordedSeconds(t *testing.T, path string) float64 {
	t.Helper()
	src, err := capture.Open(context.Background(), capture.Spec{Input: path})
	testkit.NoError(t, err)
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
	t.Parallel()
	p := start(t, "live", "--input", talkFile(t, 0), "--output", "events")
	p.line(`speaker_start`)
	p.signal(os.Interrupt)
	p.ends(exitInterrupted)
	starts := strings.Count(p.output(), protocol.TypeSpeakerStart)
	ends := strings.Count(p.output(), protocol.TypeSpeakerEnd)
	if starts == 0 || starts != ends {
		t.Errorf("%d starts and %d ends were printed", starts, ends)
	}
}

// TestHangupIgnored: a program that nohup started outlives its terminal.
func TestHangupIgnored(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "sh", nil, "-c", `trap '' HUP; exec "$@"`, "sh",
		testProgram(t), "live", "--input", talkFile(t, 6), "--output", "events")
	p.line(`speaker_start`)
	p.signal(syscall.SIGHUP)
	p.ends(exitOK)
}

// TestHangupTwice: when a terminal closes, the kernel and the shell send a signal each. The
// session ends in order all the same.
func TestHangupTwice(t *testing.T) {
	t.Parallel()
	rec := filepath.Join(t.TempDir(), "rec")
	p := start(t, "live", "--input", talkFile(t, 0), "--output", "events", "--record", rec)
	p.line(`speaker_start`)
	testkit.Eventually(t, "the end of the program", func() bool {
		_ = p.Process.Signal(syscall.SIGHUP)
		select {
		case _, more := <-p.lines:
			return !more
		default:
			return false
		}
	})
	p.ends(exitInterrupted)
	if r, err := recording.Read(t.Context(), rec); err != nil || r.Info.Ended == nil {
		t.Errorf("the recording did not end in order: %v", err)
	}
}

// TestTerminalAsInput: a terminal is no audio input; hubbub would wait for it.
func TestTerminalAsInput(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudoterminals here: ", err)
	}
	defer terminal.Close()
	var stdout, stderr bytes.Buffer
	a := &App{Args: []string{"live", "--input", "-", "--output", "lines"}, Stdin: terminal, Stdout: &stdout, Stderr: &stderr}
	const want = "hubbub: --input -: standard input is a terminal, not audio\nPipe audio into hubbub"
	if code := a.Main(); code != exitUsage || !strings.HasPrefix(stderr.String(), want) || stdout.Len() > 0 {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}
