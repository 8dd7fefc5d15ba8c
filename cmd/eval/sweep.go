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

// trial is the result of one setting of the parameters.
type trial struct {
	sets, recordings []figures
	kept, returns    int
	objective        float64 // mean over the sets, with the returns
}

// try runs one setting over the windows of all recordings.
func (ev *evaluator) try(ctx context.Context, p clustering.Params, all []windows, sets int) (trial, error) {
	t := trial{}
	outcomes := make([][]outcome, sets)
	for _, w := range all {
		_, _, hyp, err := ev.runEngineOn(ctx, &w, p, nil, voiceprint.Matching{})
		if err != nil {
			return t, err
		}
		var o outcome
		if err := o.rate(w.rec, hyp); err != nil {
			return t, err
		}
		outcomes[w.set] = append(outcomes[w.set], o)
		t.recordings = append(t.recordings, sum("", []outcome{o}))
	}
	for _, o := range outcomes {
		f := sum("", o)
		t.sets = append(t.sets, f)
		t.kept += f.Kept
		t.returns += f.Returns
	}
	t.objective = t.mean(objective)
	// A tenth of the returns under another label costs as much as 1.5 points.
	if t.returns > 0 {
		t.objective += 15 * float64(t.returns-t.kept) / float64(t.returns)
	}
	return t, nil
}

// mean is a mean over the sets.
func (t trial) mean(value func(figures) float64) (mean float64) {
	for _, f := range t.sets {
		mean += value(f) / float64(len(t.sets))
	}
	return mean
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
func (t trial) difference(base trial) string {
	m, e := difference(t.recordings, base.recordings, func(f figures) float64 { return 100 * f.DER })
	g, h := difference(t.recordings, base.recordings, objective)
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

func (t trial) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "objective %6.2f  miss %5.2f fa %5.2f conf %5.2f ", t.objective, t.mean(func(f figures) float64 { return 100 * f.Miss }),
		t.mean(func(f figures) float64 { return 100 * f.FalseAlarm }), t.mean(func(f figures) float64 { return 100 * f.Confusion }))
	lost, speakers := 0, 0
	for _, f := range t.sets {
		fmt.Fprintf(&b, "  %5.2f/%.2f", 100*f.DER, f.split())
		lost += f.Lost
		speakers += f.Speakers
	}
	fmt.Fprintf(&b, "  lost %d/%d returns %d/%d", lost, speakers, t.kept, t.returns)
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
	var base trial
	for i, p := range settings {
		t, err := ev.try(ctx, p, all, len(sets))
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
