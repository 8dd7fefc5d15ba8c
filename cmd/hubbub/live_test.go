package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/localserver/engine"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

func recordedSeconds(t *testing.T, path string) float64 {
	t.Helper()
	return float64(len(testkit.Must(capture.Decode(t.Context(), capture.Spec{Input: path}))(t))) / capture.SampleRate
}

// TestTurnsOfTheEngine: client, TLS and server change nothing: the program's turns are those of the engine alone.
func TestTurnsOfTheEngine(t *testing.T) {
	t.Parallel()
	file := talkFile(t, 0)
	p := start(t, "live", "--input", file, "--pace", "fast", "--latency", "1s", "--output", "rttm")
	p.ends(exitOK)
	e := testkit.Must(engine.New(engine.Config{Latency: time.Second}))(t)
	var events []engine.Event
	for c := range capture.NewChunkReader(t.Context(), testkit.Must(capture.Open(t.Context(), capture.Spec{Input: file}))(t), capture.Fast).Chunks() {
		events = e.Push(c.Samples, events)
	}
	timeline := protocol.NewTimeline()
	for _, ev := range e.Flush(events) {
		kind := map[engine.Kind]string{engine.Start: protocol.TypeSpeakerStart, engine.End: protocol.TypeSpeakerEnd}[ev.Kind]
		timeline.Apply(protocol.NewSpeakerEvent(kind, ev.At.Seconds(), protocol.SpeakerLabel(ev.Speaker)))
	}
	var want bytes.Buffer
	testkit.NoError(t, protocol.WriteRTTM(&want, "talk", timeline.Snapshot().Turns()))
	if got := testkit.Must(protocol.ReadRTTM(strings.NewReader(p.output())))(t); len(got) == 0 || !slices.Equal(got, testkit.Must(protocol.ReadRTTM(bytes.NewReader(want.Bytes())))(t)) {
		t.Errorf("the program:\n%sthe engine alone:\n%s", p.output(), want.String())
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
// session ends in order all the same, as at an interrupt: open turns are decided and printed.
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
	if starts, ends := strings.Count(p.output(), protocol.TypeSpeakerStart), strings.Count(p.output(), protocol.TypeSpeakerEnd); starts == 0 || starts != ends {
		t.Errorf("%d starts and %d ends were printed", starts, ends)
	}
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
