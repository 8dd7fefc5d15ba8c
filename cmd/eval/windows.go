package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"strconv"

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
// --offline those of the second pass. With --heard it reads them from that file, or writes them to it.
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

// storedWindows is the record of one recording in a file of --heard.
type storedWindows struct {
	Recording    string
	SampleCount  int
	StepCount    int
	WindowByStep map[int]*clustering.Window
	Networks     string // meter.networks
}

// saveWindows writes a file of --heard.
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

// loadWindows reads a file of --heard; ok is false when it does not exist, is of
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

const (
	// exportLag is how far behind the newest frame, in frames of 20 ms, the end of
	// a segment lies when it is exported: the networks have then seen what follows
	// it.
	exportLag = 65
	// stepFrames is how many of these frames a step of the input has.
	stepFrames = 5
	frameTime  = 0.02 // seconds
)

// exportSegments writes segments with their embeddings to the file of --pieces,
// for training the last layer of the embedder: recording, start and end in
// seconds, and the embedding, one segment per line. Windows overlap and cut the
// same speech at different places. A segment is written when its end passes
// exportLag, which is true of about half of the speech, and of no speech in many
// versions.
func (m *meter) exportSegments(ctx context.Context, sets []set) error {
	all, err := m.runNetworks(ctx, sets, m.hop*chunkSamples)
	if err != nil {
		return err
	}
	file, err := os.Create(m.segmentsFile)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, w := range all {
		for _, step := range w.steps {
			if step != nil {
				exportWindow(out, w.rec.name, step, m.hop*stepFrames)
			}
		}
	}
	err = out.Flush()
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}

// exportWindow writes the segments of one window whose end passes exportLag, when
// windows are hop frames apart. Errors stay in the writer.
func exportWindow(out io.Writer, recording string, w *clustering.Window, hop int) {
	newest := w.First + len(w.Speech)
	for _, l := range w.Speakers {
		for i := range l.Segments {
			s := &l.Segments[i]
			from, to := w.Span(s)
			if behind := newest - to; s.Duration <= 0 || behind < exportLag || behind >= exportLag+hop {
				continue
			}
			line := fmt.Appendf(nil, "%s %.2f %.2f", recording, float64(from)*frameTime, float64(to)*frameTime)
			for _, x := range s.Embedding {
				line = strconv.AppendFloat(append(line, ' '), float64(x), 'f', 5, 32)
			}
			_, _ = out.Write(append(line, '\n'))
		}
	}
}
