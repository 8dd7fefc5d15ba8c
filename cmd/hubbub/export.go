package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/recording"
	"hubbub/cmd/hubbub/internal/secondpass"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/localserver/engine/offline"
	"hubbub/protocol"
	"hubbub/protocol/export"
	"hubbub/protocol/hint"
	"hubbub/tui/display"
	"hubbub/tui/plain"
)

// formatList are the formats of --format.
type formatList []export.Format

// String is the list with commas between the formats.
func (l formatList) String() string {
	var words []string
	for _, f := range l {
		words = append(words, string(f))
	}
	return strings.Join(words, ",")
}

func parseFormats(text string) (all formatList, err error) {
	for word := range strings.SplitSeq(text, ",") {
		formats := export.Formats()
		if word != "all" {
			f, err := export.ParseFormat(word)
			if err != nil {
				return nil, err
			}
			formats = []export.Format{f}
		}
		all = append(all, slices.DeleteFunc(formats, func(f export.Format) bool { return slices.Contains(all, f) })...)
	}
	return all, nil
}

// exportFlags are the flags of `hubbub export`.
type exportFlags struct {
	formats parsed[formatList]
	to      string
	audio   choice
	force   bool
	refine  bool
}

func newExport(a *App) *cobra.Command {
	f := &exportFlags{formats: parsed[formatList]{value: export.Formats(), parse: parseFormats}, audio: choice{"auto", []string{"auto", "embed", "beside", "none"}}}
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Convert a recording to other formats",
		Long: `Convert a recording to RTTM, JSON, CSV, Audacity labels, WebVTT, and an HTML page
with the timeline and the audio. Speakers appear under their names. The files are
written into the recording's folder unless --to is given. Existing files are not
replaced without confirmation.

With --refine the turns are decided again, from the audio and with the context of
the whole recording, which is better than what was decided live. Labels, names and
merges stay, and the turns that changed are listed on standard error. The recording
itself does not change.`,
		Example: `  hubbub export monday
  hubbub export monday --format html --to monday.html
  hubbub export monday --refine --to refined/
  hubbub export monday --format csv --to - | head`,
		Args: exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.VarP(&f.formats, "format", "f", "comma-separated `FORMATS`: "+strings.Join(export.FormatNames(), ", ")+", or all")
	flags.Var((*nonEmpty)(&f.to), "to", "`PLACE` to write to: a folder; for a single format also a file, or - for standard output (default: the recording's folder)")
	f.audio.add(cmd, "audio", "", "`WHERE` the page finds its audio: embed, beside (a link to audio.wav), none, or auto: embedded up to 15 minutes and 64 MiB")
	flags.BoolVar(&f.refine, "refine", false, "decide the turns again with the context of the whole recording")
	flags.BoolVar(&f.force, "force", false, "replace existing files")
	_ = cmd.MarkFlagFilename("to")
	completeChoices(cmd, "format", append(export.FormatNames(), "all"))
	return cmd
}

func (a *App) export(ctx context.Context, dir string, f *exportFlags) error {
	formats := f.formats.value
	if f.to == "-" && len(formats) > 1 {
		return usage.Error("standard output takes one format, not "+formats.String(), "Choose one with --format, or a folder with --to.")
	}
	rec, err := recording.Read(ctx, dir)
	if err != nil {
		return err
	}
	for _, w := range rec.Warnings {
		a.notice("%s", w)
	}
	if f.to == "-" {
		content, err := a.exported(ctx, rec, f.refine)
		if err != nil {
			return err
		}
		return export.Write(a.Stdout, formats[0], content.Document(".", f.audio.value))
	}
	paths, err := exportPaths(dir, f.to, formats)
	if err != nil {
		return err
	}
	if !f.force {
		if err := a.mayReplace(paths, "--to"); err != nil {
			return err
		}
	}
	// What fails is better known before the second pass, which takes minutes.
	if folder := filepath.Dir(paths[0]); !exists(folder) {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return recording.ExportError(err)
		}
		defer func() { _ = os.Remove(folder) }() // only if nothing was written
	}
	if err := recording.CheckExport(paths[0]); err != nil {
		return err
	}
	content, err := a.exported(ctx, rec, f.refine)
	if err != nil {
		return err
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

// exported is the content of a recording, with refine after the second pass.
func (a *App) exported(ctx context.Context, rec *recording.Recording, refine bool) (content recording.Content, err error) {
	content = rec.Content(rec.Annotations)
	if !refine {
		return content, nil
	}
	if content.Turns, err = a.refine(ctx, rec); err != nil {
		return content, err
	}
	// Audio that no stream has decided may be in the recording. What the device did not deliver is not.
	content.Info.Gaps = slices.DeleteFunc(content.Info.Gaps, func(g protocol.Span) bool {
		return slices.ContainsFunc(content.Turns, func(t protocol.Turn) bool { return t.Start < g.End && g.Start < t.End })
	})
	return content, nil
}

func exportPaths(dir, to string, formats []export.Format) ([]string, error) {
	folder := to
	st, err := os.Stat(to)
	if err == nil && recording.Contains(dir, st) {
		return nil, hint.Add(fmt.Errorf("%s is a file of the recording, which an export does not replace", to), "Choose another place with --to.")
	}
	switch {
	case to == "":
		folder = dir
	case err == nil && st.IsDir(), os.IsPathSeparator(to[len(to)-1]):
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

// audioTolerance is how much earlier than its last turn the audio of a recording
// may end: that of a session that was killed lacks up to a second.
const audioTolerance = 2 * time.Second

// withoutRefine is the hint for a recording without usable audio.
const withoutRefine = "Export it without --refine: that needs no audio."

// refine runs the second pass over the audio of a recording and returns its turns
// under the labels of the session. It lists the turns that changed on standard
// error.
func (a *App) refine(ctx context.Context, rec *recording.Recording) ([]protocol.Turn, error) {
	if rec.Audio == "" {
		return nil, hint.Add(fmt.Errorf("%s contains no readable audio, which --refine needs", rec.Dir), withoutRefine)
	}
	var p secondpass.Progress
	stop := p.Show(1, a.progress)
	pass, err := secondpass.Run(ctx, rec.Audio, capture.Mix, offline.Options{}, &p)
	stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("cannot refine %s: %w", rec.Dir, err), withoutRefine)
	}
	for _, n := range pass.Notices {
		a.notice("%s", n)
	}
	live, last := rec.Turns(), 0.0
	for _, t := range live {
		last = max(last, t.End)
	}
	if missing := last - pass.Length.Seconds(); missing > audioTolerance.Seconds() {
		return nil, hint.Add(fmt.Errorf("cannot refine %s: %s ends %.0f s before the last turn", rec.Dir, rec.Audio, missing), withoutRefine)
	}
	turns := secondpass.Relabel(live, pass.Turns, rec.Annotations)
	return turns, a.printChanges(secondpass.Changes(live, turns, rec.Annotations))
}

func (a *App) printChanges(changes []secondpass.Change) error {
	if len(changes) == 0 {
		a.notice("the second pass changed no turns")
		return nil
	}
	a.notice("the second pass changed %s (- removed, + added):", display.Count(int64(len(changes)), "turn"))
	p := plain.NewPrinter(a.Stderr, plain.FormatLines, "")
	for _, c := range changes {
		sign := "-"
		if c.Added {
			sign = "+"
		}
		fmt.Fprint(a.Stderr, sign, " ")
		if err := p.Turn(c.Turn); err != nil {
			return err
		}
	}
	return nil
}
