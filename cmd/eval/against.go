package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// readEarlier reads what an earlier run has written with --json.
func readEarlier[T any](path string) (earlier T, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return earlier, usagef("give a file that eval --json has written", "--against: %w", err)
	}
	if err := json.Unmarshal(raw, &earlier); err != nil {
		return earlier, usagef("give a file that eval --json has written in the same mode", "--against: %s: %w", path, err)
	}
	return earlier, nil
}

// writeAgainst prints the differences between this run and an earlier one, set by
// set, over the recordings that both have.
func writeAgainst(w io.Writer, now, earlier []table) error {
	for i, t := range now[:min(len(now), len(earlier))] {
		fmt.Fprintf(w, "\nlatency %g s, less the earlier run (%g s, engine %s, weights %s): mean by recording ± its standard error\n",
			t.Latency, earlier[i].Latency, earlier[i].Engine, earlier[i].Weights)
		tw := differenceTable(w, "set")
		var is, was []figures
		for _, s := range t.Sets {
			a, b := pairs(s, earlier[i].Sets)
			differenceRow(tw, s.Name, a, b)
			is, was = append(is, a...), append(was, b...)
		}
		if len(t.Sets) > 1 {
			differenceRow(tw, "all", is, was)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// pairs are the recordings of a set that the earlier run has as well.
func pairs(s figures, earlier []figures) (is, was []figures) {
	for _, e := range earlier {
		for _, b := range e.EachRecording {
			for _, a := range s.EachRecording {
				if e.Name == s.Name && a.Name == b.Name {
					is, was = append(is, a), append(was, b)
				}
			}
		}
	}
	return is, was
}

// differenceTable is a table of differenceRow. name says what the rows are of.
func differenceTable(w io.Writer, name string) *tabwriter.Writer {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "%s\tfiles\tDER\tmiss\tfalse\tconf\tobjective\tlost\tlabels\treturns\t\n", name)
	return tw
}

func differenceRow(w io.Writer, name string, is, was []figures) {
	fmt.Fprintf(w, "%s\t%d\t", name, len(is))
	for _, value := range []func(figures) float64{
		func(f figures) float64 { return 100 * f.DER }, func(f figures) float64 { return 100 * f.Miss },
		func(f figures) float64 { return 100 * f.FalseAlarm }, func(f figures) float64 { return 100 * f.Confusion }, objective,
	} {
		mean, err := difference(is, was, value)
		fmt.Fprintf(w, "%+.2f ± %s\t", mean, number(err)) // one recording has no error
	}
	lost, labels, kept := 0, 0, 0
	for i := range is {
		lost += is[i].Lost - was[i].Lost
		labels += is[i].Labels - was[i].Labels
		kept += is[i].Kept - was[i].Kept
	}
	fmt.Fprintf(w, "%+d\t%+d\t%+d\t\n", lost, labels, kept)
}

// difference is the mean by recording of is less was, and its standard error.
func difference(is, was []figures, value func(figures) float64) (mean, err float64) {
	x := make([]float64, len(is))
	for i := range is {
		x[i] = value(is[i]) - value(was[i])
	}
	return meanError(x)
}
