package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"
)

// namesTable is what --enrolment measures, as --json writes it.
type namesTable struct {
	Engine, Weights string
	Rows            []namesRow
}

// namesRow is a row of the table: the names in some meetings.
type namesRow struct {
	Meetings, Enrolled, Threshold string
	// Each are the meetings by name. In several recording conditions a meeting is one:
	// its recordings are not independent.
	Each map[string]recognised
}

const namesHeader = "right %\twrong %\tstranger named %\tDER %\twithout\t"

func writeNames(out io.Writer, rows []namesRow) error {
	fmt.Fprintln(out, "rates ± their standard errors by meeting")
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "meetings\tenrolled\tthreshold\tmedian time to name\t%s\n", namesHeader)
	for _, r := range rows {
		names := slices.Sorted(maps.Keys(r.Each))
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t", r.Meetings, r.Enrolled, r.Threshold, r.median())
		for rate := range rates {
			fmt.Fprintf(tw, "%s\t", withError("%.1f", r.linearised(rate, names)))
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// writeNamesAgainst prints the differences between this run and an earlier one, row by
// row, over the meetings that both have.
func writeNamesAgainst(out io.Writer, now []namesRow, earlier namesTable) error {
	fmt.Fprintf(out, "\nless the earlier run (engine %s, weights %s), ± the standard error by meeting\n", earlier.Engine, earlier.Weights)
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "meetings\tenrolled\tthreshold\tin both\t%s\n", namesHeader)
	for _, r := range now {
		for _, e := range earlier.Rows {
			if e.Meetings != r.Meetings || e.Enrolled != r.Enrolled || e.Threshold != r.Threshold {
				continue
			}
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Each)), func(name string) bool { _, has := e.Each[name]; return !has })
			fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t", r.Meetings, r.Enrolled, r.Threshold, len(names))
			for rate := range rates {
				x := r.linearised(rate, names)
				for i, was := range e.linearised(rate, names) {
					x[i] -= was
				}
				fmt.Fprintf(tw, "%s\t", withError("%+.1f", x))
			}
			fmt.Fprintln(tw)
		}
	}
	return tw.Flush()
}

// linearised gives a value for each of the meetings: their mean is the rate of all of
// them together, and its standard error is that of the rate, a ratio of two sums, to
// first order. Without a whole they are no numbers.
func (r *namesRow) linearised(rate int, names []string) []float64 {
	var all share
	for _, name := range names {
		s := r.Each[name].Shares[rate]
		all.Part += s.Part
		all.Whole += s.Whole
	}
	x, together := make([]float64, len(names)), all.Part/all.Whole
	for i, name := range names {
		s := r.Each[name].Shares[rate]
		x[i] = together + (s.Part-together*s.Whole)/(all.Whole/float64(len(names)))
	}
	return x
}

// median is the median time from the first word of an enrolled person to the name.
func (r *namesRow) median() string {
	var delays []float64
	for _, meeting := range r.Each {
		delays = append(delays, meeting.delays...)
	}
	if len(delays) == 0 {
		return "–"
	}
	slices.Sort(delays)
	if d := delays[len(delays)/2]; !math.IsInf(d, 1) {
		return fmt.Sprintf("%.1f s", d)
	}
	return "never"
}

// withError is the mean of x in per cent and its standard error, which a single value
// does not have; a dash where there was nothing to measure.
func withError(format string, x []float64) string {
	mean, err := meanError(x)
	switch {
	case len(x) == 0 || math.IsNaN(mean):
		return "–"
	case math.IsNaN(err):
		return fmt.Sprintf(format, 100*mean)
	}
	return fmt.Sprintf(format+" ± %.1f", 100*mean, 100*err)
}
