package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hubbub/protocol/export"
)

// formatList is a flag that takes formats with commas between them.
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

// exportFlags is the command line of `hubbub export`.
type exportFlags struct {
	formats formatList
	to      string
	audio   choice
	force   bool
}

func newExport(a *App) *cobra.Command {
	f := &exportFlags{formats: formatList{export.Formats()}, audio: choice{"auto", []string{"auto", "embed", "beside", "none"}}}
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write a recording down for other programs and other people",
		Long: `Write a recording under people's names: as RTTM, JSON, CSV, Audacity labels,
WebVTT, and as a page for a browser with the timeline and the audio. The files
go into the recording's folder unless --to says otherwise; nothing is written
over without asking.`,
		Example: `  hubbub export monday
  hubbub export monday --format html --to monday.html
  hubbub export monday --format csv --to - | head`,
		Args: exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(&f.formats, "format", "f", "`FORMATS` with commas between: "+strings.Join(export.Words(), ", ")+", or all")
	flags.StringVar(&f.to, "to", "", "`PLACE`: a folder, for one format a file, or - for standard output (default: the recording's folder)")
	flags.Var(&f.audio, "audio", "`WHERE` the page has its audio: embed, beside (the page refers to audio.wav), none, or auto: embedded up to 15 minutes")
	flags.BoolVar(&f.force, "force", false, "write over files that are there already")
	_ = cmd.MarkFlagFilename("to")
	completeChoices(cmd, "format", append(export.Words(), "all"))
	completeChoices(cmd, "audio", f.audio.allowed)
	return cmd
}

func (a *App) export(ctx context.Context, dir string, f *exportFlags) error {
	formats := f.formats.value
	if f.to == "-" && len(formats) > 1 {
		return &usageError{"standard output takes one format, not " + f.formats.String(), "Choose one with --format, or a folder with --to."}
	}
	rec, err := readRecording(ctx, dir)
	if err != nil {
		return err
	}
	for _, w := range rec.warnings {
		a.notice("%s", w)
	}
	source := rec.source(rec.notes, rec.turns())
	if f.to == "-" {
		return export.Write(a.Stdout, formats[0], source.document(".", f.audio.value))
	}
	paths, err := exportPaths(dir, f.to, formats)
	if err != nil {
		return err
	}
	if !f.force {
		if err := a.mayReplace(paths); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(paths[0]), 0o777); err != nil {
		return exportError(err)
	}
	for i, format := range formats {
		// Who was asked has answered for all files.
		if err := writeExport(paths[i], format, source.document(filepath.Dir(paths[i]), f.audio.value), true); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.Stdout, paths[i]); err != nil {
			return err
		}
	}
	return nil
}

// exportPaths says where each format goes.
func exportPaths(dir, to string, formats []export.Format) ([]string, error) {
	folder := to
	switch st, err := os.Stat(to); {
	case to == "":
		folder = dir
	case err == nil && st.IsDir(), strings.HasSuffix(to, string(filepath.Separator)):
	case len(formats) == 1:
		return []string{to}, nil
	case err == nil:
		return nil, &failure{errors.New(to + " is a file, and there are several formats to write"), "Name a folder, or choose one format with --format."}
	}
	var paths []string
	for _, f := range formats {
		paths = append(paths, filepath.Join(folder, f.File()))
	}
	return paths, nil
}
