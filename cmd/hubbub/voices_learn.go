package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/hint"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/export"
)

// minLearnt is the shortest stretch of speech that is learnt from, in seconds:
// turns begin and end with what belongs to others.
const minLearnt = 0.5

// learnVoices learns the named speakers of a recording from the audio in which
// each of them talks alone: all of them, or none.
func (a *App) learnVoices(ctx context.Context, dir string) error {
	store, err := voices.Default()
	if err != nil {
		return err
	}
	rec, err := recording.Read(ctx, dir)
	if err != nil {
		return err
	}
	if rec.Audio == "" {
		return hint.Add(fmt.Errorf("the recording %s has no audio: %s", dir, strings.Join(rec.Warnings, "; ")), "Choose a recording with its audio.")
	}
	doc := rec.Content(rec.Notes).Document("", "")
	var names []string
	var speech [][]float32
	for i, p := range doc.Speakers {
		name := rec.Notes.Name(p.Label)
		if name == p.Label {
			continue
		}
		if slices.Contains(names, name) {
			return hint.Add(fmt.Errorf("two speakers of %s have the name %s", dir, protocol.Clean(name, 100)), "Merge them with m in `hubbub replay`, or rename one with r.")
		}
		samples, err := readSpans(ctx, rec.Audio, alone(doc.Turns, i))
		if err != nil {
			return fmt.Errorf("the audio of %s cannot be read: %w", dir, err)
		}
		names, speech = append(names, name), append(speech, samples)
	}
	if len(names) == 0 {
		return hint.Add(fmt.Errorf("no speaker of %s has a name", dir), "Name speakers with r in `hubbub replay`.")
	}
	var learnt []voices.Voice
	for i, name := range names {
		v, err := voiceprint.Make(speech[i])
		if err != nil {
			return hint.Add(fmt.Errorf("no voiceprint of %s, from %.1f s in which nobody else talks: %w", name, float64(len(speech[i]))/capture.SampleRate, err),
				"Correct the speakers in `hubbub replay`, or use `hubbub voices add` with other speech.")
		}
		learnt = append(learnt, voices.Voice{Version: 1, Name: name, Added: time.Now().UTC().Truncate(time.Second), Voiceprint: v.String()})
	}
	if err := store.Put(learnt...); err != nil {
		return err
	}
	a.notice(fmt.Sprintf("the voiceprints of %s are stored in %s; no audio is stored\nDelete one with `hubbub voices remove`.", strings.Join(names, ", "), store.Dir))
	return nil
}

// alone are the longest stretches, in order of time, in which only one speaker
// talks: together voiceprint.MaxSeconds at most.
func alone(turns []export.Turn, speaker int) (spans []protocol.Span) {
	for _, t := range turns {
		if t.Speaker != speaker {
			continue
		}
		rest := []protocol.Span{{Start: t.Start, End: t.End}}
		for _, o := range turns {
			if o.Speaker == speaker {
				continue
			}
			var left []protocol.Span
			for _, s := range rest {
				for _, part := range []protocol.Span{{Start: s.Start, End: min(s.End, o.Start)}, {Start: max(s.Start, o.End), End: s.End}} {
					if part.End-part.Start >= minLearnt {
						left = append(left, part)
					}
				}
			}
			rest = left
		}
		spans = append(spans, rest...)
	}
	slices.SortStableFunc(spans, func(a, b protocol.Span) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	left := float64(voiceprint.MaxSeconds)
	for i := range spans {
		spans[i].End = min(spans[i].End, spans[i].Start+left)
		left -= spans[i].End - spans[i].Start
	}
	spans = slices.DeleteFunc(spans, func(s protocol.Span) bool { return s.End <= s.Start })
	slices.SortFunc(spans, func(a, b protocol.Span) int { return cmp.Compare(a.Start, b.Start) })
	return spans
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
