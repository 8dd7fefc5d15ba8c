package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubbub/capture"
	"hubbub/hint"
	"hubbub/localserver/engine/offline"
	"hubbub/protocol"
)

// maxLength is the longest recording.
const maxLength = 24 * time.Hour

// passed is an audio file after the second pass.
type passed struct {
	*offline.Result
	info    capture.Info
	length  time.Duration
	notices []string // that arose while the file was read
}

// secondPass diarizes a file with the context of all of it. An error is that of
// the file, with a hint, or that of ctx.
func secondPass(ctx context.Context, file string, o offline.Options, p *progress) (*passed, error) {
	source, err := capture.Open(ctx, capture.Spec{Input: file})
	if err != nil {
		return nil, err
	}
	result := &passed{info: source.Info()}
	pass, err := offline.New(o)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	ctx, end := context.WithCancel(ctx)
	chunks := capture.Start(ctx, source, capture.StreamOptions{Pace: capture.Fast})
	defer func() {
		end()
		for range chunks.Chunks() { // until the source is closed
		}
	}()
	p.begin(result.info.Duration)
	for c := range chunks.Chunks() {
		pass.Push(c.Samples[:c.Valid])
		p.add(capture.ChunkDuration)
		if result.length += capture.ChunkDuration; result.length > maxLength {
			return nil, hint.Add(fmt.Errorf("%s is longer than %v", file, maxLength), "Cut it into parts.")
		}
	}
	if err := errors.Join(ctx.Err(), chunks.Err()); err != nil {
		return nil, err
	}
	if result.Result, err = pass.Finish(ctx); err != nil {
		return nil, err
	}
	result.notices = chunks.Stats().Notices
	return result, nil
}

// labelled are turns under labels, in milliseconds.
func labelled(list []offline.Turn) []protocol.Turn {
	var turns []protocol.Turn
	for _, t := range list {
		turns = append(turns, protocol.Turn{Speaker: protocol.SpeakerLabel(t.Speaker), Start: protocol.Round1ms(t.Start), End: protocol.Round1ms(t.End)})
	}
	return turns
}
