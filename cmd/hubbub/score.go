package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"hubbub/protocol"
	"hubbub/protocol/evaluation"
	"hubbub/protocol/hint"
)

func newScore(a *App) *cobra.Command {
	var uem string
	collar := newRate(0, 0, 10)
	var skipOverlap bool
	var output choice
	cmd := &cobra.Command{
		Use:   "score REF.rttm HYP.rttm",
		Short: "Compute the diarization error rate of an RTTM file",
		Long: `Compare the hypothesis HYP.rttm with the reference REF.rttm and print the
diarization error rate (DER) as defined by NIST: missed speech, false alarm and
speaker confusion, for each recording and in total. Without --uem a recording is
scored from its first to its last turn.`,
		Example: `  hubbub score truth.rttm mine.rttm
  hubbub score --collar 0.25 --skip-overlap --uem all.uem truth.rttm mine.rttm`,
		Args: exactArgs("REF.rttm", "HYP.rttm"),
		RunE: func(_ *cobra.Command, args []string) error {
			a.waiting.Store(true)
			ref, err := readTurns(args[0])
			if err != nil {
				return err
			}
			hyp, err := readTurns(args[1])
			if err != nil {
				return err
			}
			both := func(t protocol.FileTurn) bool {
				return slices.ContainsFunc(hyp, func(h protocol.FileTurn) bool { return h.File == t.File })
			}
			if len(ref) > 0 && len(hyp) > 0 && !slices.ContainsFunc(ref, both) {
				a.notice("%s and %s have no recording of the same name, such as %s and %s: all speech counts as missed, or as false alarm", args[0], args[1], ref[0].File, hyp[0].File)
			}
			regions, err := readRegions(uem)
			if err != nil {
				return err
			}
			report, err := evaluation.Score(ref, hyp, regions, evaluation.Options{Collar: collar.value, SkipOverlap: skipOverlap})
			if err != nil {
				return hint.Add(err, "Give a reference with at least one turn, and a UEM with a region of one of its files.")
			}
			if output.value == "json" {
				return report.WriteJSON(a.Stdout)
			}
			return report.WriteText(a.Stdout)
		},
	}
	flags := cmd.Flags()
	flags.Var((*nonEmpty)(&uem), "uem", "UEM `FILE` with the regions to score")
	flags.Var(&collar, "collar", "collar: `SECONDS` around each reference boundary that are not scored")
	flags.BoolVar(&skipOverlap, "skip-overlap", false, "do not score regions where reference speakers overlap")
	addOutput(cmd, &output)
	_ = cmd.MarkFlagFilename("uem", "uem")
	return cmd
}

// openFile opens a file to read; the hint says which one is expected.
func openFile(path, expected string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no such file: %s", path)
	}
	if err != nil {
		return nil, hint.Add(err, expected)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, hint.Errorf(expected, "%s is a folder", path)
	}
	return f, nil
}

// readFile reads a file in a format; the hints say which file is expected, and what a line looks like.
func readFile[T any](path, expected, line string, read func(io.Reader) ([]T, error)) ([]T, error) {
	f, err := openFile(path, expected)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := read(f)
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		line = "Check the disk."
	}
	if err != nil {
		return nil, hint.Add(fmt.Errorf("%s: %w", path, err), line)
	}
	return list, nil
}

// readTurns reads an RTTM file.
func readTurns(path string) ([]protocol.FileTurn, error) {
	return readFile(path, "Give two RTTM files: the reference, then the hypothesis.",
		"An RTTM line reads: SPEAKER FILE 1 START LENGTH <NA> <NA> LABEL <NA> <NA>", protocol.ReadRTTM)
}

// readRegions reads a UEM file; without a path there are no regions.
func readRegions(path string) ([]protocol.UEMRegion, error) {
	if path == "" {
		return nil, nil
	}
	return readFile(path, "Give a UEM file after --uem, or leave it out.", "A UEM line reads: FILE 1 START END", protocol.ReadUEM)
}
