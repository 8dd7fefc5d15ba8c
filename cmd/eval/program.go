package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"hubbub/localserver/engine/evaluation"
)

// throughProgram runs the whole program over a recording: its decoder, client, TLS,
// built-in server and engine, and takes the turns that it prints. CPU is that of
// the process, its start included; how far events lag behind the audio cannot
// be seen from outside at this pace.
func (m *meter) throughProgram(ctx context.Context, r recording, seconds float64, latency time.Duration) (outcome, []evaluation.Turn, error) {
	o := outcome{name: r.name, seconds: seconds}
	// No timeout of its own: a recording may be hours long, and an interrupt ends it.
	cmd := exec.CommandContext(ctx, m.program, "live", "--input", r.audio, "--pace", "fast", "--output", "json",
		"--latency", latency.String(), "--max-speakers", strconv.Itoa(m.maxSpeakers))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return o, nil, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return o, nil, &hinted{fmt.Errorf("%s: exit code %d", m.program, exit.ExitCode()), strings.TrimSpace(stderr.String())}
	}
	if err != nil {
		return o, nil, &hinted{err, "build it first: make build, then --program bin/hubbub"}
	}
	o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	turns, err := readTurns(r.name, &stdout)
	return o, turns, err
}

// readTurns reads what `hubbub live --output json` prints: a turn on each line.
func readTurns(name string, stdout *bytes.Buffer) ([]evaluation.Turn, error) {
	var turns []evaluation.Turn
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var t struct {
			Speaker    string
			Start, End float64
		}
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return nil, fmt.Errorf("the program printed %q, which is no turn: %w", lines.Text(), err)
		}
		if t.Speaker == "" || !(t.End > t.Start) {
			return nil, fmt.Errorf("the program printed %q, which is no turn", lines.Text())
		}
		turns = append(turns, evaluation.Turn{File: name, Speaker: t.Speaker, Start: t.Start, End: t.End})
	}
	return turns, lines.Err()
}
