package voices

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// FromRecording makes the voices of the named speakers of a recording from the audio
// in which each of them talks alone; with only, of that one, who must be there. If there
// are voices beside the error, it says which ones are missing.
func FromRecording(ctx context.Context, dir, only string) (learnt []Voice, err error) {
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
	doc := rec.Content(rec.Annotations).Document("", "")
	var missing []string
	for i, p := range doc.Speakers {
		name := rec.Annotations.Name(p.Label)
		if name == p.Label || only != "" && name != only {
			continue
		}
		if slices.ContainsFunc(learnt, func(v Voice) bool { return v.Name == name }) {
			return nil, hint.Add(fmt.Errorf("two speakers of %s have the name %s", dir, protocol.Clean(name, 100)), "Merge them with m in `hubbub replay`, or rename one with r.")
		}
		samples, err := readSpans(ctx, rec.Audio, doc.Alone(i, voiceprint.MaxSeconds))
		if err != nil {
			return nil, fmt.Errorf("the audio of %s cannot be read: %w", dir, err)
		}
		v, err := voiceprint.Make(samples)
		if err != nil {
			missing = append(missing, fmt.Sprintf("no voiceprint of %s, from %.1f s in which no other speaker talks: %v", name, float64(len(samples))/capture.SampleRate, err))
			continue
		}
		learnt = append(learnt, New(name, v, place))
	}
	switch {
	case len(missing) > 0:
		return learnt, hint.Add(errors.New(strings.Join(missing, "; ")), "Correct the speakers in `hubbub replay`, or use `hubbub voices add` with other speech.")
	case len(learnt) == 0 && only != "":
		return nil, hint.Add(fmt.Errorf("no speaker of %s has the name %s any more", dir, protocol.Clean(only, 100)), "Name speakers with r in `hubbub replay`.")
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
	reader := capture.NewChunkReader(ctx, source, capture.Fast)
	for c := range reader.Chunks() {
		at := int(c.Seq) * capture.ChunkSamples
		if len(spans) == 0 || at >= int(spans[len(spans)-1].End*capture.SampleRate) {
			break
		}
		for _, s := range spans {
			if first, last := max(int(s.Start*capture.SampleRate)-at, 0), min(int(s.End*capture.SampleRate)-at, c.Valid); first < last {
				samples = append(samples, c.Samples[first:last]...)
			}
		}
	}
	return samples[:min(len(samples), voiceprint.MaxSeconds*capture.SampleRate)], reader.Err()
}
