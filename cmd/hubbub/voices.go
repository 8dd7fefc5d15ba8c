package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hubbub/cmd/hubbub/internal/voices"
	"hubbub/localserver/engine/offline"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

func newVoices(a *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "voices",
		Short: "List, add and remove the people whom live recognises",
		Long: `List the people whom 'hubbub live --voices' recognises. What is stored of each is
a voiceprint, from which speech cannot be played, in a folder that only its user
can read. Voiceprints of another engine version are outdated: add or learn them again.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.listVoices() },
	}
	add := &cobra.Command{
		Use:     "add NAME --input SOURCE",
		Short:   "Learn a person's voice from at most 30 s of audio",
		Example: "  hubbub voices add Anna --input anna.wav\n  hubbub voices add Ben --input mic",
		Args:    exactArgs("NAME"),
	}
	input := add.Flags().StringP("input", "i", "", "audio `SOURCE`: mic, mic:NAME, parec:NAME, a WAV, FLAC or MP3 file, or - for standard input")
	add.RunE = func(cmd *cobra.Command, args []string) error {
		if *input == "" {
			return &usageError{"--input is missing", "Name a file with speech of one person, or mic."}
		}
		return a.addVoice(cmd.Context(), args[0], *input)
	}
	cmd.AddCommand(add,
		newLearnVoices(a),
		&cobra.Command{Use: "rename NAME NEW", Short: "Give a person's voiceprint another name", Args: exactArgs("NAME", "NEW"),
			RunE: func(_ *cobra.Command, args []string) error { return a.renameVoice(args[0], args[1]) }},
		&cobra.Command{Use: "remove NAME", Short: "Delete a person's voiceprint", Args: exactArgs("NAME"),
			RunE: func(_ *cobra.Command, args []string) error { return a.removeVoice(args[0]) }},
		&cobra.Command{Use: "export FILE", Short: "Write all voiceprints to a new file", Args: exactArgs("FILE"),
			RunE: func(_ *cobra.Command, args []string) error { return exportVoices(args[0]) }},
		&cobra.Command{Use: "import FILE", Short: "Add the voiceprints of an exported file", Args: exactArgs("FILE"),
			RunE: func(_ *cobra.Command, args []string) error { return importVoices(args[0]) }})
	return cmd
}

func newLearnVoices(a *App) *cobra.Command {
	outdated := false
	cmd := &cobra.Command{
		Use: "learn [DIR]", Short: "Learn the voices of the named speakers of a recording",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && outdated:
				return &usageError{"DIR and --outdated exclude each other", "Usage: " + cmd.UseLine()}
			case outdated:
				return noArgs(cmd, args)
			}
			return exactArgs("DIR")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if outdated {
				return a.learnOutdated(cmd.Context())
			}
			return a.learnVoices(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&outdated, "outdated", false, "learn the outdated voiceprints again, from their recordings")
	return cmd
}

func storedVoices() (voices.Store, []voices.Voice, error) {
	store, err := voices.Default()
	if err != nil {
		return store, nil, err
	}
	list, err := store.List()
	return store, list, err
}

func (a *App) listVoices() error {
	store, list, err := storedVoices()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.notice("no voices are stored in %s\nAdd one with `hubbub voices add NAME --input FILE`.", store.Dir)
		return nil
	}
	w := a.table("NAME\tADDED\tSTATE")
	for _, v := range list {
		state := "current"
		if v.Outdated() {
			state = "outdated"
			if v.Recording != "" && onDisk(v.Recording) {
				state += ", its recording is " + v.Recording
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, v.Added.Format(time.DateOnly), state)
	}
	return w.Flush()
}

func (a *App) removeVoice(name string) error {
	store, err := voices.Default()
	if err != nil {
		return err
	}
	removed, err := store.Remove(name)
	if err != nil {
		return err
	}
	if !removed {
		return noVoice(name)
	}
	return nil
}

func (a *App) renameVoice(from, to string) error {
	if err := protocol.CheckVoiceprintLabel(to); err != nil {
		return &usageError{fmt.Sprintf("the name %q cannot be used: it %v", protocol.Clean(to, 100), err), "Choose another name."}
	}
	store, err := voices.Default()
	if err != nil {
		return err
	}
	renamed, err := store.Rename(from, to)
	if err == nil && !renamed {
		err = noVoice(from)
	}
	return err
}

func noVoice(name string) error {
	return hint.Add(fmt.Errorf("no voice of %q is stored", protocol.Clean(name, 100)), "List them with `hubbub voices`.")
}

func exportVoices(path string) error {
	_, list, err := storedVoices()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%s exists already", path)
	}
	if err != nil {
		return hint.Add(err, "Choose another file.")
	}
	if err := errors.Join(printJSONList(file, list), file.Close()); err != nil {
		_ = os.Remove(path) // a part of it is of no use, and would be in the way
		return hint.Add(err, "Choose another file.")
	}
	return nil
}

// maxVoicesFile bounds an exported file, in bytes.
const maxVoicesFile = 2 << 20

func importVoices(path string) error {
	store, err := voices.Default()
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return hint.Add(err, "Name a file that `hubbub voices export` has written.")
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxVoicesFile))
	var list []voices.Voice
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return hint.Add(fmt.Errorf("%s has no voices: %w", path, err), "Name a file that `hubbub voices export` has written.")
	}
	for _, v := range list {
		if v.Check() == nil && v.Outdated() {
			return hint.Add(fmt.Errorf("the voiceprint of %s was made by another engine version", v.Name), "Make it again from speech with `hubbub voices add`, and export it again.")
		}
	}
	return store.Put(list...)
}

// voicesFlags are the flags of commands that recognise people.
type voicesFlags struct {
	voices    bool
	threshold count // percent
}

func defaultVoicesFlags() voicesFlags {
	return voicesFlags{threshold: count{100 * voiceprint.DefaultThreshold, 1, 99}}
}

func (f *voicesFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.voices, "voices", false, "recognise the people that 'hubbub voices' lists")
	flags.Var(&f.threshold, "voices-threshold", "confidence in `PERCENT` that --voices needs for a name: a higher one gives fewer wrong names and more missing ones")
}

// enrolment is the people whom a stream recognises, nil without --voices.
func (a *App) enrolment(f *liveFlags) (*protocol.Enrolment, error) {
	if !f.recognises() {
		return nil, nil
	}
	list, err := a.currentVoices()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	// Where the engine has divided one person into two labels, both get the name.
	threshold, exclusive := float64(f.threshold.value), false
	e := &protocol.Enrolment{Matching: &protocol.Matching{Threshold: &threshold, Exclusive: &exclusive}}
	for _, v := range list {
		e.Voiceprints = append(e.Voiceprints, protocol.LabelledVoiceprint{Label: v.Name, Voiceprint: v.Voiceprint})
	}
	return e, nil
}

// currentVoices are the stored people without those whose voiceprints are outdated,
// which a notice names.
func (a *App) currentVoices() (current []voices.Voice, err error) {
	_, list, err := storedVoices()
	for _, v := range list {
		if v.Outdated() {
			a.notice("the voiceprint of %s is of another engine version and is not used\nLearn it again with `hubbub voices add`.", v.Name)
			continue
		}
		current = append(current, v)
	}
	return current, err
}

// people are the stored people whom a recording recognises.
func (a *App) people() (people []voiceprint.Person, err error) {
	list, err := a.currentVoices()
	for _, v := range list {
		print, invalid := voiceprint.Parse(v.Voiceprint)
		if invalid != nil { // never: the store has checked it
			return nil, invalid
		}
		people = append(people, voiceprint.Person{Label: v.Name, Voiceprint: print})
	}
	return people, err
}

// recognise gives the turns of the speakers of a second pass the names of people.
func recognise(r *offline.Result, people []voiceprint.Person, m voiceprint.Matching, turns []protocol.Turn) {
	confidences := make([][]float64, len(r.Voices))
	for k, v := range r.Voices {
		confidences[k] = voiceprint.Confidences(&v.Embedding, v.Duration, people, nil)
	}
	names := map[string]string{}
	for k, i := range voiceprint.Assign(confidences, m) {
		if i >= 0 {
			names[protocol.SpeakerLabel(k)] = people[i].Label
		}
	}
	for i := range turns {
		turns[i].Match = names[turns[i].Speaker]
	}
}
