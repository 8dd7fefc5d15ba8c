package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/evaluation"
	"hubbub/protocol"
)

// inProcess runs an engine over a recording.
func (m *meter) inProcess(ctx context.Context, r recording, samples []float32, latency time.Duration) (outcome, []evaluation.Turn, error) {
	o := outcome{name: r.name, seconds: float64(len(samples)) / engine.SampleRate}
	e, err := engine.New(engine.Config{Latency: latency, MaxSpeakers: m.maxSpeakers})
	if err != nil {
		return o, nil, err
	}
	runtime.LockOSThread() // CPU time is told by thread
	defer runtime.UnlockOSThread()
	begin := threadTime()
	var events []engine.Event
	for at := 0; at < len(samples); at += chunkSamples {
		if ctx.Err() != nil {
			return o, nil, ctx.Err()
		}
		end := min(at+chunkSamples, len(samples))
		known := len(events)
		events = e.Push(samples[at:end], events)
		newest := time.Duration(end) * time.Second / engine.SampleRate
		for _, event := range events[known:] {
			o.lags = append(o.lags, newest-event.At)
		}
	}
	events = e.Flush(events)
	o.cpu = threadTime() - begin
	turns, err := fold(r.name, events)
	return o, turns, err
}

// fold makes turns of events, and catches an engine that breaks its word.
func fold(name string, events []engine.Event) ([]evaluation.Turn, error) {
	var turns []evaluation.Turn
	open := map[int]time.Duration{}
	for _, e := range events {
		start, talking := open[e.Speaker]
		switch {
		case e.Kind == engine.Start && !talking:
			open[e.Speaker] = e.At
		case e.Kind == engine.End && talking && e.At > start:
			delete(open, e.Speaker)
			turns = append(turns, evaluation.Turn{File: name, Speaker: protocol.SpeakerLabel(e.Speaker), Start: start.Seconds(), End: e.At.Seconds()})
		default:
			return nil, fmt.Errorf("the engine sent %+v out of turn", e)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("the engine left %d turns open", len(open))
	}
	return turns, nil
}
