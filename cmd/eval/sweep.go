package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"hubbub/localserver/engine"
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/voiceprint"
)

// A sweep tries other parameters of the clustering on stored windows.

// try runs one setting over the windows of all recordings.
func (ev *evaluator) try(ctx context.Context, p clustering.Params, all []windows, sets []set) (table, error) {
	outcomes := make([][]outcome, len(sets))
	for _, w := range all {
		_, _, hyp, err := ev.runEngineOn(ctx, &w, p, nil, voiceprint.Matching{})
		if err != nil {
			return table{}, err
		}
		o := outcome{name: w.rec.name, seconds: float64(w.Samples) / engine.SampleRate}
		if err := o.rate(w.rec, hyp); err != nil {
			return table{}, err
		}
		outcomes[w.set] = append(outcomes[w.set], o)
	}
	return newTable(ev.latencies[0], sets, outcomes), nil
}

// recordings are those of all sets.
func (t table) recordings() (all []figures) {
	for _, f := range t.Sets {
		all = append(all, f.EachRecording...)
	}
	return all
}

// split is the labels per speaker, 1 where no speaker was found.
func (f figures) split() float64 {
	if f.Split == nil {
		return 1
	}
	return *f.Split
}

// objective is what parameters are chosen by. As much as a point of DER
// cost: 0.033 labels per speaker too many, 3.3 % of the speakers lost, and one
// label too many or too few in a third of the recordings. Users notice wrong
// labels most.
func objective(f figures) float64 {
	g := 100*f.DER + 3*f.CountError + 30*max(0, f.split()-1)
	if f.Speakers > 0 {
		g += 30 * float64(f.Lost) / float64(f.Speakers)
	}
	return g
}

// meanError is the mean of x and its standard error.
func meanError(x []float64) (mean, err float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		err += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(err / (n - 1) / n)
}

// sweep prints the table of --set, and what differs with each value of --sweep alone.
func (ev *evaluator) sweep(ctx context.Context, sets []set, w io.Writer) error {
	names, settings := []string{""}, []clustering.Params{clustering.Default()}
	for _, text := range ev.set {
		if err := setParam(&settings[0], text); err != nil {
			return err
		}
	}
	for _, text := range ev.values {
		name, values, _ := strings.Cut(text, "=")
		for v := range strings.SplitSeq(values, "/") {
			p := settings[0]
			if err := setParam(&p, name+"="+v); err != nil {
				return err
			}
			names, settings = append(names, name+"="+v), append(settings, p)
		}
	}
	all, err := ev.runNetworks(ctx, sets)
	if err != nil {
		return err
	}
	base, err := ev.try(ctx, settings[0], all, sets)
	if err != nil {
		return err
	}
	if err := writeText(w, []table{base}, ev.settings); err != nil || len(settings) == 1 {
		return err
	}
	fmt.Fprintln(w, "\nless the table: mean by recording ± its standard error")
	tw := differenceTable(w, "with")
	for i, p := range settings[1:] {
		t, err := ev.try(ctx, p, all, sets)
		if err != nil {
			return cmp.Or(tw.Flush(), err)
		}
		differenceRow(tw, names[i+1], t.recordings(), base.recordings())
	}
	return tw.Flush()
}
