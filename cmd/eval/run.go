package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"hubbub/localserver/engine"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// runEngine runs an engine of this process over a recording.
func (ev *evaluator) runEngine(ctx context.Context, r recording, samples []float32, latency time.Duration) (outcome, []protocol.FileTurn, error) {
	o := outcome{name: r.name, seconds: float64(len(samples)) / engine.SampleRate}
	e, err := engine.New(engine.Config{Latency: latency})
	if err != nil {
		return o, nil, err
	}
	runtime.LockOSThread() // CPU time is measured by thread
	defer runtime.UnlockOSThread()
	begin := threadTime()
	events, emitted, err := push(ctx, e, samples)
	if err != nil {
		return o, nil, err
	}
	for i, at := range emitted {
		o.lags = append(o.lags, at-events[i].At)
	}
	events = e.Flush(events)
	o.cpu = threadTime() - begin
	turns, err := fold(r.name, events)
	return o, turns, err
}

// push gives an engine the samples of a recording. emitted is when each event was emitted.
func push(ctx context.Context, e *engine.Engine, samples []float32) (events []engine.Event, emitted []time.Duration, err error) {
	for at := 0; at < len(samples); at += chunkSamples {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		end := min(at+chunkSamples, len(samples))
		events = e.Push(samples[at:end], events)
		for len(emitted) < len(events) {
			emitted = append(emitted, time.Duration(end)*time.Second/engine.SampleRate)
		}
	}
	return events, emitted, nil
}

// fold makes turns of events. It is an error when they break what engine.Event
// promises.
func fold(name string, events []engine.Event) ([]protocol.FileTurn, error) {
	var turns []protocol.FileTurn
	open := map[int]time.Duration{}
	for _, e := range events {
		start, isOpen := open[e.Speaker]
		switch {
		case e.Kind == engine.Start && !isOpen:
			open[e.Speaker] = e.At
		case e.Kind == engine.End && isOpen && e.At > start:
			delete(open, e.Speaker)
			turns = append(turns, protocol.FileTurn{File: name, Turn: protocol.Turn{Speaker: protocol.SpeakerLabel(e.Speaker), Start: start.Seconds(), End: e.At.Seconds()}})
		default:
			return nil, fmt.Errorf("the engine sent %+v out of order", e)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("the engine left %d turns open", len(open))
	}
	return turns, nil
}

// runProgram runs the whole program over a recording (decoder, client, TLS,
// built-in server and engine) and reads the RTTM that it prints. CPU time is that
// of the process, its start included. The lag of events cannot be measured from
// outside at this pace.
func (ev *evaluator) runProgram(ctx context.Context, r recording, seconds float64, latency time.Duration) (outcome, []protocol.FileTurn, error) {
	o := outcome{name: r.name, seconds: seconds}
	// No timeout: a recording may be hours long, and an interrupt ends it.
	cmd := exec.CommandContext(ctx, ev.program, "live", "--input", r.audio, "--pace", "fast", "--output", "rttm",
		"--latency", latency.String())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return o, nil, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return o, nil, hint.Add(fmt.Errorf("%s: exit code %d", ev.program, exit.ExitCode()), strings.TrimSpace(stderr.String()))
	}
	if err != nil {
		return o, nil, hint.Add(err, "build it first: make build, then --program bin/hubbub")
	}
	o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	turns, err := protocol.ReadRTTM(&stdout)
	for i := range turns {
		turns[i].File = r.name // the program uses the name of the audio
	}
	return o, turns, err
}
