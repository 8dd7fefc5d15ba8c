package main

import (
	"context"
	"encoding/gob"
	"fmt"
	"os"
	"slices"
	"time"

	"hubbub/capture"
	"hubbub/localserver/engine"
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/features"
	"hubbub/localserver/engine/inference"
	"hubbub/localserver/engine/offline"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
)

// For tuning and training, the networks run once over every recording. Their
// windows are kept, and clustered again for each setting of the parameters.

// windows are the windows of one recording. What is exported is its record in a file of --windows.
type windows struct {
	set       int
	rec       recording
	Recording string // path of the audio
	Networks  string // evaluator.networks
	Samples   int
	Steps     int // of 100 ms
	Due       []dueWindow
}

// dueWindow is a window with the step in which it was due.
type dueWindow struct {
	Step int
	*clustering.Window
}

// replay is an engine.WindowSource that gives them again.
type replay struct {
	due  []dueWindow
	step int
}

func (r *replay) Push([]float32, bool) (w *clustering.Window) {
	if len(r.due) > 0 && r.due[0].Step == r.step {
		w, r.due = r.due[0].Window, r.due[1:]
	}
	r.step++
	return w
}

// Stored windows know nothing of the channel: an engine on them has no snapshots.
func (*replay) Channel() features.Channel { return features.Channel{} }
func (*replay) Resume(features.Channel)   {}

// runEngineOn runs an engine over the stored windows of a recording, with the people
// whom it can recognise. emitted is when each event was emitted.
func (ev *evaluator) runEngineOn(ctx context.Context, w *windows, p clustering.Params, people []voiceprint.Person, matching voiceprint.Matching) (events []engine.Event, emitted []time.Duration, hyp []protocol.FileTurn, err error) {
	e, err := engine.NewWith(engine.Config{Latency: ev.latencies[0]}, p, &replay{due: w.Due})
	if err != nil {
		return nil, nil, nil, err
	}
	e.Enrol(people, matching)
	if events, emitted, err = push(ctx, e, make([]float32, w.Samples)); err != nil {
		return nil, nil, nil, err
	}
	events = e.Flush(events)
	for len(emitted) < len(events) {
		emitted = append(emitted, time.Duration(w.Samples)*time.Second/engine.SampleRate)
	}
	hyp, err = fold(w.rec.name, events)
	return events, emitted, hyp, err
}

// addTo gives the windows to a second pass.
func (w *windows) addTo(pass *offline.Recording) {
	for _, due := range w.Due {
		pass.Add(due.Window, due.Step == w.Steps-1)
	}
}

// hop is how many samples the windows of the live engine are apart.
const hop = 2 * chunkSamples

// runNetworks gives the windows of all recordings: those of the live engine, or with
// --offline of the second pass. With --windows it reads them from that file, or writes them to it.
func (ev *evaluator) runNetworks(ctx context.Context, sets []set) ([]windows, error) {
	if ev.windowsFile != "" {
		if all, ok, err := loadWindows(ev.windowsFile, sets, ev.networks()); ok || err != nil {
			return all, err
		}
	}
	bySet := make([][]windows, len(sets))
	for i, s := range sets {
		bySet[i] = make([]windows, len(s.recordings))
	}
	err := ev.eachRecording(ctx, sets, func(ctx context.Context, i, j int, r recording) error {
		bySet[i][j] = windows{set: i, rec: r, Recording: r.audio, Networks: ev.networks()}
		return ev.infer(ctx, &bySet[i][j])
	})
	all := slices.Concat(bySet...)
	if err != nil {
		return nil, err
	}
	if ev.windowsFile != "" {
		return all, saveWindows(ev.windowsFile, all)
	}
	return all, nil
}

// networks says what else than the recordings the output of the networks depends on.
func (ev *evaluator) networks() string {
	apart := hop
	if ev.offline {
		apart = 0 // that of the second pass
	}
	return fmt.Sprintf("engine %s, weights %s, hop %d, gain %g", engine.Version(), engine.WeightsVersion(), apart, ev.gain)
}

// infer runs the networks over one recording.
func (ev *evaluator) infer(ctx context.Context, w *windows) error {
	samples, err := capture.Decode(ctx, capture.Spec{Input: w.rec.audio})
	if err != nil {
		return err
	}
	amplify(samples, ev.gain)
	stream := inference.New(hop)
	if ev.offline {
		stream = offline.Networks()
	}
	w.Samples = len(samples)
	// The end of an engine's input comes after the last whole chunk.
	for at := 0; at < len(samples) || at == len(samples) && !ev.offline; at += chunkSamples {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		end := min(at+chunkSamples, len(samples))
		if due := stream.Push(samples[at:end], end-at < chunkSamples || ev.offline && end == len(samples)); due != nil {
			w.Due = append(w.Due, dueWindow{w.Steps, due.Clone()})
		}
		w.Steps++
	}
	ev.report(w.rec.name)
	return nil
}

// saveWindows writes a file of --windows.
func saveWindows(path string, all []windows) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	e := gob.NewEncoder(file)
	for _, w := range all {
		if err := e.Encode(w); err != nil {
			return err
		}
	}
	return file.Close()
}

// loadWindows reads a file of --windows; ok is false when it does not exist, is of
// other recordings or other networks, or has another format.
func loadWindows(path string, sets []set, networks string) (all []windows, ok bool, err error) {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	d := gob.NewDecoder(file)
	for i, s := range sets {
		for _, r := range s.recordings {
			w := windows{set: i, rec: r}
			if err := d.Decode(&w); err != nil || w.Recording != r.audio || w.Networks != networks {
				return nil, false, nil
			}
			all = append(all, w)
		}
	}
	return all, true, nil
}
