package main

import (
	"context"
	"encoding/gob"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/inference"
	"hubbub/localserver/engine/offline"
)

// For tuning and training, the networks run once over every recording. Their
// windows are kept, and clustered again for each setting of the parameters.

// windows are the windows of one recording.
type windows struct {
	set     int
	rec     recording
	samples int
	steps   []*clustering.Window // by step of 100 ms, nil where none was due
}

// replay is an engine.WindowSource that gives them again.
type replay struct {
	steps []*clustering.Window
	next  int
}

func (r *replay) Push([]float32, bool) *clustering.Window {
	w := r.steps[r.next]
	r.next++
	return w
}

// runNetworks gives the windows of all recordings, hop samples apart, or with
// --offline those of the second pass. With --windows it reads them from that file, or writes them to it.
func (m *meter) runNetworks(ctx context.Context, sets []set, hop int) ([]windows, error) {
	if m.windowsFile != "" {
		if all, ok, err := loadWindows(m.windowsFile, sets, m.networks(hop)); ok || err != nil {
			return all, err
		}
	}
	var all []windows
	for i, s := range sets {
		for _, r := range s.recordings {
			all = append(all, windows{set: i, rec: r})
		}
	}
	m.total = len(all)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(m.jobs)
	for i := range all {
		group.Go(func() error { return m.infer(ctx, &all[i], hop) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if m.windowsFile != "" {
		return all, saveWindows(m.windowsFile, all, m.networks(hop))
	}
	return all, nil
}

// networks says what else than the recordings the output of the networks depends on.
func (m *meter) networks(hop int) string {
	if m.offline {
		hop = 0 // that of the second pass
	}
	return fmt.Sprintf("weights %s, hop %d, gain %g", engine.WeightsVersion(), hop, m.gain)
}

// infer runs the networks over one recording.
func (m *meter) infer(ctx context.Context, w *windows, hop int) error {
	samples, err := decode(ctx, w.rec.audio)
	if err != nil {
		return err
	}
	amplify(samples, m.gain)
	stream, err := inference.New(hop)
	if m.offline {
		stream, err = offline.Networks()
	}
	if err != nil {
		return err
	}
	w.samples = len(samples)
	for at := 0; at < len(samples); at += chunkSamples {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		end := min(at+chunkSamples, len(samples))
		step := stream.Push(samples[at:end], end-at < chunkSamples || m.offline && end == len(samples))
		if step != nil {
			step = step.Clone()
		}
		w.steps = append(w.steps, step)
	}
	m.report(w.rec.name)
	return nil
}

// storedWindows is the record of one recording in a file of --windows.
type storedWindows struct {
	Recording    string
	SampleCount  int
	StepCount    int
	WindowByStep map[int]*clustering.Window
	Networks     string // meter.networks
}

// saveWindows writes a file of --windows.
func saveWindows(path string, all []windows, networks string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	e := gob.NewEncoder(file)
	for _, w := range all {
		s := storedWindows{w.rec.name, w.samples, len(w.steps), map[int]*clustering.Window{}, networks}
		for i, step := range w.steps {
			if step != nil {
				s.WindowByStep[i] = step
			}
		}
		if err := e.Encode(s); err != nil {
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
			var stored storedWindows
			if err := d.Decode(&stored); err != nil || stored.Recording != r.name || stored.Networks != networks {
				return nil, false, nil
			}
			w := windows{set: i, rec: r, samples: stored.SampleCount, steps: make([]*clustering.Window, stored.StepCount)}
			for at, step := range stored.WindowByStep {
				w.steps[at] = step
			}
			all = append(all, w)
		}
	}
	return all, true, nil
}
