package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// enoughSpeech is the speech, in seconds, after which no more is recorded from a
// device.
const enoughSpeech = 15

// addVoice learns a voice. Audio beyond voiceprint.MaxSeconds is not used.
func (a *App) addVoice(ctx context.Context, name, input string) error {
	if err := protocol.CheckVoiceprintLabel(name); err != nil {
		return &usageError{fmt.Sprintf("the name %q cannot be used: it %v", protocol.Clean(name, 100), err), "Choose another name."}
	}
	store, err := voices.Default()
	if err != nil {
		return err
	}
	source, err := capture.Open(ctx, capture.Spec{Input: input, Stdin: a.Stdin})
	if err != nil {
		return err
	}
	defer source.Close()
	m, err := voiceprint.NewMaker()
	if err != nil {
		return err
	}
	if err := a.hearVoice(ctx, m, source); err != nil {
		return err
	}
	seconds := m.Seconds()
	v, err := m.Voiceprint()
	if err != nil {
		return hint.Add(fmt.Errorf("no voiceprint of %s: %w", name, err), "Give 2 to 30 s of clear speech of one person.")
	}
	if err := store.Put(voices.New(name, v, "")); err != nil {
		return err
	}
	a.notice("the voiceprint of %s, of %.1f s of speech, is stored in %s; no audio is stored\nDelete it with `hubbub voices remove`.", name, seconds, store.Dir)
	return nil
}

// hearVoice gives the maker the audio of the source: a file to its end, a device
// until there is enough speech. Of a device it shows how much is missing.
func (a *App) hearVoice(ctx context.Context, m *voiceprint.Maker, source capture.Source) error {
	live := source.Info().Kind.Live()
	show := func(float64) {}
	if live {
		a.notice("recording from %s; speak until %d s of speech are there, at most %d s", source.Info().Name, enoughSpeech, voiceprint.MaxSeconds)
		show = a.speechProgress()
		defer a.clearLine()
	}
	chunk := make([]float32, protocol.ChunkSamples)
	for !m.Full() && !(live && m.Seconds() >= enoughSpeech) {
		n, err := source.Read(ctx, chunk)
		m.Push(chunk[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		show(m.Seconds())
	}
	return nil
}

// speechProgress shows seconds of speech: on a terminal in one line, elsewhere in
// a line for every five seconds.
func (a *App) speechProgress() func(seconds float64) {
	const step = 5
	terminal, next := session.IsTerminal(a.Stderr), 0.0
	return func(seconds float64) {
		missing := max(0, enoughSpeech-seconds)
		switch {
		case terminal:
			fmt.Fprintf(a.Stderr, "\r%.1f s of speech, %.1f s missing\x1b[K", seconds, missing)
		case seconds >= next:
			a.notice("%.0f s of speech, %.0f s missing", seconds, missing)
			next += step
		}
	}
}
