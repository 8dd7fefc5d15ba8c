package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// learnVoices learns the named speakers of a recording: all of them, or none.
func (a *App) learnVoices(ctx context.Context, dir string) error {
	store, err := voices.Default()
	if err != nil {
		return err
	}
	learnt, err := learnFrom(ctx, dir, nil)
	if err != nil {
		return err
	}
	return a.storeLearnt(store, learnt)
}

// learnOutdated learns every outdated voice again whose recording still exists, and
// reports the others.
func (a *App) learnOutdated(ctx context.Context) error {
	store, list, err := storedVoices()
	if err != nil {
		return err
	}
	byRecording := map[string][]string{}
	var left []string
	for _, v := range list {
		switch {
		case !v.Outdated():
		case v.Recording == "" || !onDisk(v.Recording):
			left = append(left, v.Name)
		default:
			byRecording[v.Recording] = append(byRecording[v.Recording], v.Name)
		}
	}
	var learnt []voices.Voice
	for _, dir := range slices.Sorted(maps.Keys(byRecording)) {
		again, err := learnFrom(ctx, dir, byRecording[dir])
		if err != nil {
			return err
		}
		learnt = append(learnt, again...)
	}
	if len(learnt) > 0 {
		if err := a.storeLearnt(store, learnt); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return hint.Add(fmt.Errorf("no recording is left to learn %s again from", strings.Join(left, ", ")), "Add them with `hubbub voices add`, or remove them with `hubbub voices remove`.")
	}
	if len(learnt) == 0 {
		a.notice("no voice is outdated")
	}
	return nil
}

func onDisk(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (a *App) storeLearnt(store voices.Store, learnt []voices.Voice) error {
	if err := store.Put(learnt...); err != nil {
		return err
	}
	var names []string
	for _, v := range learnt {
		names = append(names, v.Name)
	}
	a.notice("the voiceprints of %s are stored in %s; no audio is stored\nDelete one with `hubbub voices remove`.", strings.Join(names, ", "), store.Dir)
	return nil
}

// learnFrom makes the voices of the named speakers of a recording from the audio in
// which each of them talks alone; with only, of these, who must all be there.
func learnFrom(ctx context.Context, dir string, only []string) (learnt []voices.Voice, err error) {
	rec, err := recording.Read(ctx, dir)
	if err != nil {
		return nil, err
	}
	if rec.Audio == "" {
		return nil, hint.Add(fmt.Errorf("the recording %s has no audio: %s", dir, strings.Join(rec.Warnings, "; ")), "Choose a recording with its audio.")
	}
	place, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	doc := rec.Content(rec.Notes).Document("", "")
	for i, p := range doc.Speakers {
		name := rec.Notes.Name(p.Label)
		if name == p.Label || only != nil && !slices.Contains(only, name) {
			continue
		}
		if slices.ContainsFunc(learnt, func(v voices.Voice) bool { return v.Name == name }) {
			return nil, hint.Add(fmt.Errorf("two speakers of %s have the name %s", dir, protocol.Clean(name, 100)), "Merge them with m in `hubbub replay`, or rename one with r.")
		}
		samples, err := readSpans(ctx, rec.Audio, doc.Alone(i, voiceprint.MaxSeconds))
		if err != nil {
			return nil, fmt.Errorf("the audio of %s cannot be read: %w", dir, err)
		}
		v, err := voiceprint.Make(samples)
		if err != nil {
			return nil, hint.Add(fmt.Errorf("no voiceprint of %s, from %.1f s in which no other speaker talks: %w", name, float64(len(samples))/capture.SampleRate, err),
				"Correct the speakers in `hubbub replay`, or use `hubbub voices add` with other speech.")
		}
		learnt = append(learnt, voices.New(name, v, place))
	}
	switch {
	case only != nil && len(learnt) < len(only):
		return nil, hint.Add(fmt.Errorf("%s no longer names all of %s", dir, strings.Join(only, ", ")), "Name speakers with r in `hubbub replay`.")
	case len(learnt) == 0:
		return nil, hint.Add(fmt.Errorf("no speaker of %s has a name", dir), "Name speakers with r in `hubbub replay`.")
	}
	return learnt, nil
}

// readSpans reads stretches of an audio file, which are in order of time.
func readSpans(ctx context.Context, path string, spans []protocol.Span) (samples []float32, err error) {
	source, err := capture.Open(ctx, capture.Spec{Input: path})
	if err != nil {
		return nil, err
	}
	defer source.Close()
	chunk := make([]float32, protocol.ChunkSamples)
	for at := 0; len(spans) > 0; {
		n, err := source.Read(ctx, chunk)
		for len(spans) > 0 {
			from, to := int(spans[0].Start*capture.SampleRate), int(spans[0].End*capture.SampleRate)
			if first, last := max(from-at, 0), min(to-at, n); first < last {
				samples = append(samples, chunk[first:last]...)
			}
			if to > at+n {
				break
			}
			spans = spans[1:]
		}
		at += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return samples[:min(len(samples), voiceprint.MaxSeconds*capture.SampleRate)], nil
}

// newLearner learns voices while a session runs, on displays with a user; it is nil
// on others. correct is for the end of the session.
func newLearner(d session.Display, notes *protocol.AnnotationsStore) (l session.VoiceLearner, correct func() error) {
	store, err := voices.Default()
	if err != nil || !d.Attended() { // without a home folder nothing can be remembered
		return nil, func() error { return nil }
	}
	learner := voices.NewLearner(store)
	return learner, func() error {
		names, _ := notes.Load()
		_, err := learner.Correct(names)
		return err
	}
}
