package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/protocol/export"
	"hubbub/protocol/hint"
)

// formatList is a flag that takes a comma-separated list of formats.
type formatList struct{ value []export.Format }

func (l *formatList) String() string {
	var words []string
	for _, f := range l.value {
		words = append(words, string(f))
	}
	return strings.Join(words, ",")
}
func (l *formatList) Type() string { return "formats" }
func (l *formatList) Set(s string) error {
	var all []export.Format
	for _, word := range strings.Split(s, ",") {
		if word == "all" {
			all = append(all, export.Formats()...)
			continue
		}
		f, err := export.ParseFormat(word)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	l.value = all
	return nil
}

// exportFlags are the flags of `hubbub export`.
type exportFlags struct {
	formats formatList
	to      string
	audio   choice
	force   bool
	refine  bool
}

func newExport(a *App) *cobra.Command {
	f := &exportFlags{formats: formatList{export.Formats()}, audio: choice{"auto", []string{"auto", "embed", "beside", "none"}}}
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Convert a recording to other formats",
		Long: `Convert a recording to RTTM, JSON, CSV, Audacity labels, WebVTT, and an HTML page
with the timeline and the audio. Speakers appear under their names. The files are
written into the recording's folder unless --to is given. Existing files are not
replaced without confirmation.

With --refine the turns are decided again, from the audio and with the context of the
whole recording, which is better than what was decided live. Labels, names and merges
stay, and the turns that changed are listed on standard error. The recording itself
does not change.`,
		Example: `  hubbub export monday
  hubbub export monday --format html --to monday.html
  hubbub export monday --refine --to refined/
  hubbub export monday --format csv --to - | head`,
		Args: exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&f.formats, "format", "f", "comma-separated `FORMATS`: "+strings.Join(export.Words(), ", ")+", or all")
	flags.StringVar(&f.to, "to", "", "`PLACE` to write to: a folder; for a single format also a file, or - for standard output (default: the recording's folder)")
	f.audio.add(cmd, "audio", "", "`WHERE` the page finds its audio: embed, beside (a link to audio.wav), none, or auto: embedded up to 15 minutes")
	flags.BoolVar(&f.refine, "refine", false, "decide the turns again with the context of the whole recording")
	flags.BoolVar(&f.force, "force", false, "replace existing files")
	_ = cmd.MarkFlagFilename("to")
	completeChoices(cmd, "format", append(export.Words(), "all"))
	return cmd
}

func (a *App) export(ctx context.Context, dir string, f *exportFlags) error {
	formats := f.formats.value
	if f.to == "-" && len(formats) > 1 {
		return &usageError{"standard output takes one format, not " + f.formats.String(), "Choose one with --format, or a folder with --to."}
	}
	rec, err := recording.Read(ctx, dir)
	if err != nil {
		return err
	}
	for _, w := range rec.Warnings {
		a.notice("%s", w)
	}
	var paths []string
	if f.to != "-" {
		if paths, err = exportPaths(dir, f.to, formats); err != nil {
			return err
		}
	}
	if !f.force {
		if err := a.mayReplace(paths, "--to"); err != nil {
			return err
		}
	}
	if f.to != "-" { // before the second pass, which takes minutes
		made, err := makeFolder(filepath.Dir(paths[0]))
		if err != nil {
			return recording.ExportError(err)
		}
		defer func() { _ = os.Remove(made) }() // only if nothing was written
	}
	content := rec.Content(rec.Notes)
	if f.refine {
		if content.Turns, err = a.refine(ctx, rec); err != nil {
			return err
		}
	}
	if f.to == "-" {
		return export.Write(a.Stdout, formats[0], content.Document(".", f.audio.value))
	}
	for i, format := range formats {
		if err := recording.WriteExport(paths[i], format, content.Document(filepath.Dir(paths[i]), f.audio.value), true); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.Stdout, paths[i]); err != nil {
			return err
		}
	}
	return nil
}

// makeFolder makes a folder, and returns its path if it did not exist.
func makeFolder(dir string) (made string, err error) {
	if _, err := os.Stat(dir); err == nil {
		return "", nil
	}
	return dir, os.MkdirAll(dir, 0o777)
}

// exportPaths is the path of each format.
func exportPaths(dir, to string, formats []export.Format) ([]string, error) {
	folder := to
	st, err := os.Stat(to)
	if err == nil && recording.Contains(dir, st) {
		return nil, hint.Add(fmt.Errorf("%s is a file of the recording, which an export does not replace", to), "Choose another place with --to.")
	}
	switch {
	case to == "":
		folder = dir
	case err == nil && st.IsDir(), strings.HasSuffix(to, string(filepath.Separator)):
	case len(formats) == 1:
		return []string{to}, nil
	case err == nil:
		return nil, hint.Add(errors.New(to+" is a file, but there are several formats to write"), "Name a folder, or choose one format with --format.")
	}
	var paths []string
	for _, f := range formats {
		paths = append(paths, filepath.Join(folder, f.File()))
	}
	return paths, nil
}

// mayReplace asks about existing files: on a terminal the user, elsewhere the
// answer is no. place is the flag that names another place.
func (a *App) mayReplace(paths []string, place string) error {
	var existing []string
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil {
			existing = append(existing, p)
		}
	}
	if len(existing) == 0 {
		return nil
	}
	what := existing[0] + " exists"
	if len(existing) > 1 {
		what = fmt.Sprintf("%s and %d more exist", existing[0], len(existing)-1)
	}
	refused := hint.Add(fmt.Errorf("%s already; nothing was written", what), "Write over with --force, or choose another place with "+place+".")
	if !session.IsTerminal(a.Stdin) || !session.IsTerminal(a.Stderr) {
		return refused
	}
	fmt.Fprintf(a.Stderr, "%s. Write over? [y/N] ", what)
	answer, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return refused
}
