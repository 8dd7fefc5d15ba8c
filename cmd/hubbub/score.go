package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"hubbub/localserver/engine/evaluation"
	"hubbub/protocol"
)

func newScore(a *App) *cobra.Command {
	var uem string
	var collar float64
	var skipOverlap bool
	output := choice{"text", []string{"text", "json"}}
	cmd := &cobra.Command{
		Use:   "score REF.rttm HYP.rttm",
		Short: "Diarization error rate of one RTTM file against another",
		Long: `Print the diarization error rate (DER) over all files of the two RTTM files,
and by file: missed speech, false alarm and speaker confusion, as NIST counts
them. Without --uem a file is scored from the first to the last turn in it.`,
		Example: `  hubbub score truth.rttm mine.rttm
  hubbub score --collar 0.25 --skip-overlap --uem all.uem truth.rttm mine.rttm`,
		Args: exactArgs("REF.rttm", "HYP.rttm"),
		RunE: func(_ *cobra.Command, args []string) error {
			if collar < 0 || collar > 10 {
				return &usageError{fmt.Sprintf("--collar %g: must be from 0 to 10 seconds", collar), "The usual collars are 0 and 0.25."}
			}
			ref, err := readTurns(args[0])
			if err != nil {
				return err
			}
			hyp, err := readTurns(args[1])
			if err != nil {
				return err
			}
			regions, err := readRegions(uem)
			if err != nil {
				return err
			}
			report, err := evaluation.Score(ref, hyp, regions, evaluation.Options{Collar: collar, SkipOverlap: skipOverlap})
			if err != nil {
				return err
			}
			if output.value == "json" {
				return report.WriteJSON(a.Stdout)
			}
			return report.WriteText(a.Stdout)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&uem, "uem", "", "UEM `FILE`: the parts of the files to score")
	flags.Float64Var(&collar, "collar", 0, "`SECONDS` on each side of a reference boundary that do not count")
	flags.BoolVar(&skipOverlap, "skip-overlap", false, "leave out where several speakers of the reference talk at once")
	flags.Var(&output, "output", "`FORMAT`: text or json")
	_ = cmd.MarkFlagFilename("uem", "uem")
	completeChoices(cmd, "output", output.allowed)
	return cmd
}

// readTurns reads an RTTM file in the scorer's shape.
func readTurns(path string) ([]evaluation.Turn, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &failure{err, "Give two RTTM files: the reference, then the hypothesis."}
	}
	defer f.Close()
	turns, err := protocol.ReadRTTM(f)
	if err != nil {
		return nil, &failure{fmt.Errorf("%s: %w", path, err), "An RTTM line reads: SPEAKER FILE 1 START LENGTH <NA> <NA> LABEL <NA> <NA>"}
	}
	out := make([]evaluation.Turn, len(turns))
	for i, t := range turns {
		out[i] = evaluation.Turn{File: t.File, Speaker: t.Speaker, Start: t.Start, End: t.End}
	}
	return out, nil
}

// readRegions reads a UEM file; no path means no regions.
func readRegions(path string) ([]evaluation.Region, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &failure{err, "Give a UEM file after --uem, or leave it out."}
	}
	defer f.Close()
	regions, err := protocol.ReadUEM(f)
	if err != nil {
		return nil, &failure{fmt.Errorf("%s: %w", path, err), "A UEM line reads: FILE 1 START END"}
	}
	out := make([]evaluation.Region, len(regions))
	for i, r := range regions {
		out[i] = evaluation.Region{File: r.File, Start: r.Start, End: r.End}
	}
	return out, nil
}
