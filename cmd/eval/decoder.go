package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/decoder"
	"hubbub/localserver/engine/offline"
	"hubbub/protocol"
)

// decoderRecord is the first line of a file of --decoder, in JSON. For each part
// little-endian float32 follow: speech and number of speakers of each frame; the speakers' scores
// of each frame; for each step of two frames, each speaker and each scale, a cosine.
type decoderRecord struct {
	Parts     []decoderPart
	Reference []decoderTurn
	Regions   []protocol.UEMRegion // nil: all of the recording is annotated
}

// decoderTurn is a turn of the reference.
type decoderTurn struct {
	Speaker    string
	Start, End float64
}

// decoderPart is what the decoder sees at once: the whole recording, or in the live
// engine the newest 5 s.
type decoderPart struct {
	First, Frames int
	Numbers       []int // of the speakers
}

// exportDecoder writes the decoder's input for each recording to the folder of
// --decoder, for training it.
func (ev *evaluator) exportDecoder(ctx context.Context, sets []set) error {
	if err := os.MkdirAll(ev.decoderDir, 0o755); err != nil {
		return err
	}
	return ev.eachRecording(ctx, sets, func(ctx context.Context, _, _ int, r recording) error { return ev.exportRecording(ctx, r) })
}

func (ev *evaluator) exportRecording(ctx context.Context, r recording) error {
	w := windows{rec: r}
	if err := ev.infer(ctx, &w); err != nil {
		return err
	}
	head := decoderRecord{Regions: r.uem}
	for _, t := range r.ref {
		head.Reference = append(head.Reference, decoderTurn{t.Speaker, t.Start, t.End})
	}
	var data bytes.Buffer
	add := head.addWindows
	if ev.offline {
		add = head.addRecording
	}
	if err := add(ctx, &w, &data); err != nil {
		return err
	}
	line, err := json.Marshal(head)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(ev.decoderDir, r.name+".bin"), append(append(line, '\n'), data.Bytes()...), 0o644)
}

// addRecording adds what the decoder of the second pass sees.
func (r *decoderRecord) addRecording(ctx context.Context, w *windows, data io.Writer) error {
	pass, err := offline.New(offline.Options{})
	if err != nil {
		return err
	}
	w.addTo(pass)
	result, err := pass.Finish(ctx)
	if err != nil {
		return err
	}
	in := result.DecoderInput()
	numbers := make([]int, in.Speakers)
	for k := range numbers {
		numbers[k] = k
	}
	return r.add(0, numbers, &in, data)
}

const (
	// liveFrames is 5 s, and liveHop the distance in windows of two parts.
	liveFrames, liveHop = 250, 3
)

// addWindows adds what the decoder of the live engine sees after every third window.
func (r *decoderRecord) addWindows(_ context.Context, w *windows, data io.Writer) error {
	c := clustering.New(clustering.Default(), clustering.MaxSpeakers)
	var input clustering.DecoderInput
	for n, due := range w.Due {
		c.Add(due.Window)
		first := due.First + len(due.SpeechProbability) - liveFrames
		c.Discard(first - decoder.Split)
		if (n+1)%liveHop != 0 {
			continue
		}
		c.DecoderInput(first, &input)
		if err := r.add(input.First, slices.Clone(input.Numbers), &input.Input, data); err != nil {
			return err
		}
	}
	return nil
}

func (r *decoderRecord) add(first int, numbers []int, in *decoder.Input, data io.Writer) error {
	r.Parts = append(r.Parts, decoderPart{first, len(in.Frames), numbers})
	for _, values := range []any{in.Frames, in.Scores, in.Cosines} {
		if err := binary.Write(data, binary.LittleEndian, values); err != nil {
			return err
		}
	}
	return nil
}
