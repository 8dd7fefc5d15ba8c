package secondpass

import (
	"context"
	"errors"
	"fmt"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
)

// Transcribe gives turns of a file, in order of their starts, their words, from the
// channels that the turns are of; track is the track of a label. notice says what is
// missing; an error is that of ctx, or of the file.
func Transcribe(ctx context.Context, file string, selected capture.Channels, r words.Recogniser, turns []protocol.Turn, track map[string]int, p *Progress) (notice string, err error) {
	source, err := capture.OpenRecording(ctx, file, selected, capture.DecoderStall)
	if err != nil {
		return "", err
	}
	reader := capture.NewChunkReader(ctx, source, capture.Fast)
	recording := words.NewRecording(r, turns, false, func(t protocol.Turn) int { return track[t.Speaker] })
	for c := range reader.Chunks() {
		if err := recording.Audio(ctx, c.Seq*capture.ChunkSamples, c.Apart()...); err != nil {
			break
		}
		p.add(&p.recognised, capture.ChunkDuration)
	}
	failed, first, err := recording.Finish(ctx)
	if failed > 0 {
		notice = fmt.Sprintf("%d of %d turns have no words: %v. %s", failed, len(turns), first, hint.Of(first))
	}
	return notice, errors.Join(err, reader.Err())
}
