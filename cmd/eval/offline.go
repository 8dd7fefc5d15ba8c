package main

import (
	"context"
	"runtime"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/offline"
	"hubbub/protocol"
)

// runOffline runs the second pass over a recording, or over its stored windows.
func (ev *evaluator) runOffline(ctx context.Context, r recording, samples []float32) (outcome, []protocol.FileTurn, error) {
	stored := ev.stored[r.audio]
	o := outcome{name: r.name, seconds: float64(max(len(samples), stored.Samples)) / engine.SampleRate}
	params := offline.Default()
	for _, text := range ev.set {
		if err := setParam(&params, text); err != nil {
			return o, nil, err
		}
	}
	options := offline.Options{}
	if ev.known {
		people := map[string]bool{}
		for _, t := range r.ref {
			people[t.Speaker] = true
		}
		options.Speakers = len(people)
	}
	pass, err := offline.NewWith(options, params)
	if err != nil {
		return o, nil, err
	}
	runtime.LockOSThread() // CPU time is measured by thread
	defer runtime.UnlockOSThread()
	begin := threadTime()
	pass.Push(samples)
	stored.addTo(pass)
	result, err := pass.Finish(ctx)
	if err != nil {
		return o, nil, err
	}
	o.cpu = threadTime() - begin
	var turns []protocol.FileTurn
	for _, t := range result.Turns {
		turns = append(turns, protocol.FileTurn{File: r.name, Turn: protocol.Turn{Speaker: protocol.SpeakerLabel(t.Speaker), Start: t.Start, End: t.End}})
	}
	return o, turns, nil
}
