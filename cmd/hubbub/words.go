package main

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"hubbub/hint"
	"hubbub/words"
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
