package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"hubbub/capture"
	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/words"
)

// wordsFlags name a recogniser of speech.
type wordsFlags struct {
	words      string // "" = none
	wordsModel string
}

// recogniserHelp is what the value of --words may be.
const recogniserHelp = "the URL of an OpenAI-compatible endpoint (key in " + wordsKeyEnv + "), or a command that gets WAV on its standard input and prints text"

func (f *wordsFlags) add(flags *pflag.FlagSet, help string) {
	flags.StringVar(&f.words, "words", "", help)
	flags.StringVar(&f.wordsModel, "words-model", "", "`MODEL` that the endpoint of --words is asked for")
}

// wordsKeyEnv gives the key of the endpoint of --words.
const wordsKeyEnv = "HUBBUB_WORDS_KEY"

// recogniser is that of --words, nil without the flag. The key of an endpoint comes
// from the environment, or else from the key ring.
func (f *wordsFlags) recogniser() (words.Recogniser, error) {
	if f.words == "" {
		return nil, nil
	}
	key := os.Getenv(wordsKeyEnv)
	if strings.HasPrefix(f.words, "http") && key == "" {
		key, _ = storedKey(f.words) // most recognisers of one's own need none
	}
	r, err := words.New(f.words, f.wordsModel, key)
	if err != nil {
		return nil, &usageError{"--words: " + err.Error(), hint.Of(err)}
	}
	return r, nil
}

// transcribe gives turns of a file, in order of their starts, their words. notice says
// what is missing; an error is that of ctx, or of the file.
func transcribe(ctx context.Context, file string, r words.Recogniser, turns []protocol.Turn) (notice string, err error) {
	source, err := capture.OpenRecording(ctx, file, capture.Mix, capture.DecoderStall)
	if err != nil {
		return "", err
	}
	chunks := capture.Start(ctx, source, capture.ChunkReaderOptions{Pace: capture.Fast})
	defer chunks.Close()
	recording := words.NewRecording(r, turns, false)
	for c := range chunks.Chunks() {
		if err := recording.Audio(ctx, c.Seq*capture.ChunkSamples, c.Samples); err != nil {
			return "", err
		}
	}
	if err := errors.Join(ctx.Err(), chunks.Err()); err != nil {
		return "", err
	}
	failed, first, err := recording.Finish(ctx)
	if failed > 0 {
		notice = fmt.Sprintf("%d of %d turns have no words: %v. %s", failed, len(turns), first, hint.Of(first))
	}
	return notice, err
}
