package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

func newVoices(a *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "voices",
		Short: "List, add and remove the people whose voices are recognised",
		Long: `List the people whom 'hubbub live' and 'hubbub diarize' recognise with --voices. Of
each a voiceprint is stored, from which speech cannot be played, in a folder that
only its user can read. Voiceprints of another engine version are outdated: add or
learn them again.`,
		Args: noArgs,
		RunE: onStore(a.listVoices),
	}
	add := &cobra.Command{
		Use:     "add NAME --input SOURCE",
		Short:   "Learn a person's voice from at most 30 s of audio",
		Example: "  hubbub voices add Anna --input anna.wav\n  hubbub voices add Ben --input mic",
		Args:    exactArgs("NAME"),
	}
	input := add.Flags().StringP("input", "i", "", "audio `SOURCE`: mic, mic:NAME, parec:NAME, a WAV, FLAC or MP3 file, other formats if ffmpeg is installed, or - for standard input")
	add.RunE = onStore(func(ctx context.Context, s voices.Store, args []string) error {
		if *input == "" {
			return usage.Error("--input is missing", "Name a file with speech of one person, or mic.")
		}
		return a.addVoice(ctx, s, args[0], *input)
	})
	cmd.AddCommand(add,
		&cobra.Command{Use: "list", Short: "List the people, as 'hubbub voices' alone does", Args: noArgs, RunE: cmd.RunE},
		newLearnVoices(a),
		&cobra.Command{Use: "rename NAME NEW", Short: "Give a person's voiceprint another name", Args: exactArgs("NAME", "NEW"),
			RunE: onStore(renameVoice)},
		&cobra.Command{Use: "remove NAME", Short: "Delete a person's voiceprint", Args: exactArgs("NAME"), SuggestFor: []string{"delete", "rm"},
			RunE: onStore(removeVoice)},
		&cobra.Command{Use: "export FILE", Short: "Write all voiceprints to a new file; - is standard output", Args: exactArgs("FILE"),
			RunE: onStore(a.exportVoices)},
		&cobra.Command{Use: "import FILE", Short: "Add the voiceprints of an exported file; - is standard input", Args: exactArgs("FILE"),
			RunE: onStore(a.importVoices)})
	return cmd
}

// onStore runs do with the user's store and the arguments of a command.
func onStore(do func(ctx context.Context, s voices.Store, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := voices.Default()
		if err != nil {
			return err
		}
		return do(cmd.Context(), s, args)
	}
}

func (a *App) exportVoices(_ context.Context, s voices.Store, args []string) error {
	if args[0] == "-" {
		return s.Write(a.Stdout)
	}
	return s.Export(args[0])
}

func newLearnVoices(a *App) *cobra.Command {
	outdated := false
	cmd := &cobra.Command{
		Use: "learn [DIR]", Short: "Learn the voices of the named speakers of a recording",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && outdated:
				return usage.Error("DIR and --outdated exclude each other", "Usage: "+cmd.UseLine())
			case outdated:
				return noArgs(cmd, args)
			}
			return exactArgs("DIR")(cmd, args)
		},
		RunE: onStore(func(ctx context.Context, s voices.Store, args []string) error {
			if outdated {
				return a.learnOutdated(ctx, s)
			}
			return a.learnVoices(ctx, s, args[0])
		}),
	}
	cmd.Flags().BoolVar(&outdated, "outdated", false, "learn the outdated voiceprints again, from their recordings")
	return cmd
}

func (a *App) listVoices(_ context.Context, s voices.Store, _ []string) error {
	list, err := s.List()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.notice("no voiceprints are stored in %s\nAdd one with `hubbub voices add NAME --input FILE`.", s.Dir)
		return nil
	}
	return printList(a.Stdout, "text", "NAME\tADDED\tSTATE", list, func(v voices.Voice) string {
		state := "current"
		if v.Outdated() {
			state = "outdated"
			if v.Recording != "" && exists(v.Recording) {
				state += ", its recording is " + v.Recording
			}
		}
		return v.Name + "\t" + v.Added.Format(time.DateOnly) + "\t" + state
	})
}

func (a *App) importVoices(_ context.Context, s voices.Store, args []string) error {
	a.waiting.Store(true)
	path := args[0]
	file, name := a.Stdin, path
	if path == "-" {
		name = "standard input"
	} else {
		var err error
		if file, err = openFile(path, "Name a file that `hubbub voices export` has written."); err != nil {
			return err
		}
		defer file.Close()
	}
	list, err := voices.ReadExport(file, name)
	a.waiting.Store(false)
	if err != nil {
		return err
	}
	if list = a.withoutOutdated(list); len(list) == 0 {
		return hint.Add(fmt.Errorf("%s has no voiceprint of this engine version", name), "Make them again from speech with `hubbub voices add`, and export them again.")
	}
	return a.storeVoices(s, "", list...)
}

func removeVoice(_ context.Context, s voices.Store, args []string) error { return s.Remove(args[0]) }

func renameVoice(_ context.Context, s voices.Store, args []string) error {
	if err := checkName(args[1]); err != nil {
		return err
	}
	return s.Rename(args[0], args[1])
}

func checkName(name string) error {
	if err := protocol.CheckVoiceprintLabel(name); err != nil {
		return usage.Error(fmt.Sprintf("the name %.100q cannot be used: it %v", name, err), "Choose another name.")
	}
	return nil
}

// enoughSpeech is the speech, in seconds, after which no more is recorded from a
// device.
const enoughSpeech = 15

// addVoice learns a voice. Audio beyond voiceprint.MaxSeconds is not used.
func (a *App) addVoice(ctx context.Context, s voices.Store, name, input string) error {
	err := checkName(name)
	if err != nil {
		return err
	}
	var source capture.Source
	if input == "-" || capture.IsDevice(input) {
		source, err = capture.Open(ctx, capture.Spec{Input: input, Stdin: a.Stdin})
	} else {
		source, err = capture.OpenRecording(ctx, input, capture.Mix, capture.DecoderStall)
	}
	if err != nil {
		return inputError(err)
	}
	defer source.Close()
	m := voiceprint.NewMaker()
	if err := a.readVoice(ctx, m, source); err != nil {
		return err
	}
	for _, n := range append([]string{source.Info().Notice}, source.Notices()...) {
		if n != "" {
			a.notice("%s", n)
		}
	}
	seconds := m.Seconds()
	v, err := m.Voiceprint()
	if err != nil {
		return hint.Add(fmt.Errorf("no voiceprint of %s: %w", name, err), "Give 2 to 30 s of clear speech of one person. Of longer audio only the first 30 s are used.")
	}
	return a.storeVoices(s, fmt.Sprintf(", of %.1f s of speech,", seconds), voices.New(name, v, ""))
}

// readVoice passes to the maker the audio of the source: a file to its end, a device
// until there is enough speech. Of a device it shows how much is missing.
func (a *App) readVoice(ctx context.Context, m *voiceprint.Maker, source capture.Source) error {
	live := source.Info().Kind.Live()
	show := func(float64) {}
	if live {
		a.notice("recording from %s; speak until %d s of speech are there, at most %d s", source.Info().Name, enoughSpeech, voiceprint.MaxSeconds)
		show = a.speechProgress()
		defer a.progress("")
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
			a.progress(fmt.Sprintf("%.1f s of speech, %.1f s missing", seconds, missing))
		case seconds >= next:
			a.notice("%.0f s of speech, %.0f s missing", seconds, missing)
			next += step
		}
	}
}

// learnVoices learns the named speakers of a recording, as far as they have enough speech.
func (a *App) learnVoices(ctx context.Context, s voices.Store, dir string) (err error) {
	learnt, missing := voices.FromRecording(ctx, dir, "")
	if len(learnt) > 0 {
		err = a.storeVoices(s, "", learnt...)
	}
	return cmp.Or(err, missing)
}

// learnOutdated learns every outdated voice again whose recording still exists, and
// reports the others.
func (a *App) learnOutdated(ctx context.Context, s voices.Store) error {
	list, err := s.List()
	if err != nil {
		return err
	}
	var left []string
	var learnt []voices.Voice
	for _, v := range list {
		switch {
		case !v.Outdated():
		case v.Recording == "" || !exists(v.Recording):
			left = append(left, v.Name)
		default:
			again, err := voices.FromRecording(ctx, v.Recording, cmp.Or(v.Recorded, v.Name))
			if ctx.Err() != nil {
				return err
			}
			if err != nil {
				a.notice("%v\n%s", err, whatToDo(err))
				left = append(left, v.Name)
				continue
			}
			again[0].Name, again[0].Recorded = v.Name, v.Recorded
			learnt = append(learnt, again...)
		}
	}
	if len(learnt) > 0 {
		if err := a.storeVoices(s, "", learnt...); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return hint.Add(fmt.Errorf("not learnt again from a recording: %s", strings.Join(left, ", ")), "Add them with `hubbub voices add`, or remove them with `hubbub voices remove`.")
	}
	if len(learnt) == 0 {
		a.notice("no voice is outdated")
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func names(list []voices.Voice) string {
	var names []string
	for _, v := range list {
		names = append(names, v.Name)
	}
	return strings.Join(names, ", ")
}

// storeVoices stores voices, and says which earlier ones they replace. length is that of
// the speech behind one voice, as a part of a sentence.
func (a *App) storeVoices(s voices.Store, length string, list ...voices.Voice) error {
	replaced, err := s.Put(list...)
	if err != nil {
		return err
	}
	are := "voiceprints of " + names(list) + " are"
	if len(list) == 1 {
		are = "voiceprint of " + list[0].Name + length + " is"
	}
	a.notice("the %s stored in %s; no audio is stored\n`hubbub voices remove NAME` deletes it.", are, s.Dir)
	if len(replaced) > 0 {
		a.notice("%s: the earlier voiceprint is replaced", names(replaced))
	}
	return nil
}

// voicesFlags are the flags of commands that recognise people.
type voicesFlags struct {
	voices    bool
	threshold count // percent
}

func (f *voicesFlags) add(flags *pflag.FlagSet) {
	f.threshold = newCount(100*voiceprint.DefaultThreshold, 99)
	flags.BoolVar(&f.voices, "voices", false, "recognise the people that 'hubbub voices' lists")
	flags.Var(&f.threshold, "voices-threshold", "confidence in `PERCENT` that --voices needs for a name: a higher one gives fewer wrong names and more missing ones")
}

// currentVoices are the stored people without those whose voiceprints are outdated.
func (a *App) currentVoices() ([]voices.Voice, error) {
	s, err := voices.Default()
	if err != nil {
		return nil, err
	}
	list, err := s.List()
	if err == nil && len(list) == 0 {
		a.notice("nobody is recognised: no voiceprints are stored\nAdd one with `hubbub voices add NAME --input FILE`.")
	}
	return a.withoutOutdated(list), err
}

// withoutOutdated leaves out outdated voiceprints, which one notice names.
func (a *App) withoutOutdated(list []voices.Voice) (current []voices.Voice) {
	var outdated []voices.Voice
	for _, v := range list {
		if v.Outdated() {
			outdated = append(outdated, v)
		} else {
			current = append(current, v)
		}
	}
	if len(outdated) > 0 {
		a.notice("of another engine version, and not used: %s\nLearn them again with `hubbub voices learn --outdated` or `hubbub voices add`.", names(outdated))
	}
	return current
}
