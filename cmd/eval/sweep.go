package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

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
		o := outcome{name: w.rec.name}
		if err := o.rate(w.rec, hyp); err != nil {
			return table{}, err
		}
		outcomes[w.set] = append(outcomes[w.set], o)
	}
	return newTable(ev.latencies[0], sets, outcomes), nil
}

// mean is a mean over the sets.
func (t table) mean(value func(figures) float64) (mean float64) {
	for _, f := range t.Sets {
		mean += value(f) / float64(len(t.Sets))
	}
	return mean
}

// goal is the mean of the objective over the sets, with the returns: a tenth of them under another label costs as much as
// 1.5 points.
func (t table) goal() float64 {
	return t.mean(objective) + 15*float64(t.All.Returns-t.All.Kept)/float64(max(t.All.Returns, 1))
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

// objective is what parameters are chosen by, without returns. As much as a point of DER
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

// difference is t less base by recording: means of DER and objective (without returns)
// with their standard errors.
func (t table) difference(base table) string {
	m, e := difference(t.recordings(), base.recordings(), func(f figures) float64 { return 100 * f.DER })
	g, h := difference(t.recordings(), base.recordings(), objective)
	return fmt.Sprintf("  by recording DER %+.2f ± %.2f objective %+.2f ± %.2f", m, e, g, h)
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

// String is the table in one line.
func (t table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "objective %6.2f  miss %5.2f fa %5.2f conf %5.2f ", t.goal(), t.mean(func(f figures) float64 { return 100 * f.Miss }),
		t.mean(func(f figures) float64 { return 100 * f.FalseAlarm }), t.mean(func(f figures) float64 { return 100 * f.Confusion }))
	for _, f := range t.Sets {
		fmt.Fprintf(&b, "  %5.2f/%.2f", 100*f.DER, f.split())
	}
	fmt.Fprintf(&b, "  lost %d/%d returns %d/%d", t.All.Lost, t.All.Speakers, t.All.Kept, t.All.Returns)
	return b.String()
}

// sweep tries each value of --sweep alone, starting from --set.
func (ev *evaluator) sweep(ctx context.Context, sets []set, w io.Writer) error {
	names, settings := []string{"as set"}, []clustering.Params{clustering.Default()}
	for _, text := range ev.set {
		if err := setParam(&settings[0], text); err != nil {
			return err
		}
	}
	for _, text := range ev.values {
		name, values, _ := strings.Cut(text, "=")
		for _, v := range strings.Split(values, "/") {
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
	var base table
	for i, p := range settings {
		t, err := ev.try(ctx, p, all, sets)
		if err != nil {
			return err
		}
		if i == 0 {
			base = t
			fmt.Fprintf(w, "%-24s %v\n", names[i], t)
			continue
		}
		fmt.Fprintf(w, "%-24s %v%s\n", names[i], t, t.difference(base))
	}
	return nil
}
