package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/optimize"

	"hubbub/localserver/engine/clustering"
)

const (
	// searchStep is the standard deviation of the first tries, in the logarithm of
	// each parameter.
	searchStep = 0.06
	// searchTries is the number of tries in a round (the population of CMA-ES).
	searchTries = 14
)

// candidate is one setting of the parameters and its result.
type candidate struct {
	x []float64 // steps of searchStep from the start, in the logarithm
	t trial
}

// search looks for better parameters with CMA-ES over their logarithms. After each
// round it prints the weighted mean of the better half, not the best try: the objective
// moves in steps, as a person is found or not, and the best of hundreds of
// tries is overfitted to these recordings.
func (ev *evaluator) search(ctx context.Context, p clustering.Params, all []windows, sets int, w io.Writer) error {
	names := slices.DeleteFunc(parameterNames(&p), func(n string) bool {
		return slices.ContainsFunc(ev.keep, func(k string) bool { return strings.EqualFold(k, n) })
	})
	if len(names) == 0 {
		return usagef("leave some out of --keep", "there is nothing to search")
	}
	at := func(x []float64) clustering.Params {
		q := p
		for i, name := range names {
			field, _ := parameter(&q, name) // one of the names
			field.SetFloat(field.Float() * math.Exp(searchStep*x[i]))
		}
		return q
	}
	var mu sync.Mutex // guards what follows: tries run concurrently
	var round []candidate
	var failed error
	rounds := 0
	try := func(x []float64) float64 {
		t, err := trial{}, ctx.Err()
		if err == nil {
			t, err = ev.try(at(x), all, sets)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
			return math.NaN()
		}
		if round = append(round, candidate{slices.Clone(x), t}); len(round) == searchTries {
			rounds++
			printRound(w, rounds, round, names, at)
			round = round[:0]
		}
		return t.objective
	}
	status := func() (optimize.Status, error) {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			return optimize.Failure, failed
		}
		return optimize.NotTerminated, nil
	}
	_, err := optimize.Minimize(optimize.Problem{Func: try, Status: status}, make([]float64, len(names)),
		&optimize.Settings{MajorIterations: ev.rounds, Concurrent: ev.jobs, Converger: optimize.NeverTerminate{}},
		&optimize.CmaEsChol{InitStepSize: 1, Population: searchTries, ForgetBest: true, Src: rand.NewPCG(1, 2)})
	return err
}

// printRound prints a round: its mean, its best try, and the weighted mean of its
// better half in the form that --set takes.
func printRound(w io.Writer, n int, round []candidate, names []string, at func([]float64) clustering.Params) {
	slices.SortFunc(round, func(a, b candidate) int { return cmp.Compare(a.t.objective, b.t.objective) })
	mean := 0.0
	for _, g := range round {
		mean += g.t.objective / float64(len(round))
	}
	fmt.Fprintf(w, "%3d mean %6.2f best %v\n    ", n, mean, round[0].t)
	q := at(weightedMean(round[:len(round)/2]))
	for i, name := range names {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		field, _ := parameter(&q, name)
		fmt.Fprintf(w, "%s=%.4f", name, field.Float())
	}
	fmt.Fprintln(w)
}

// weightedMean is the mean of candidates in order of their objective with the weights of
// CMA-ES, which are larger for the better ones.
func weightedMean(better []candidate) []float64 {
	mean, sum := make([]float64, len(better[0].x)), 0.0
	for k, g := range better {
		weight := math.Log(float64(len(better))+0.5) - math.Log(float64(k+1))
		sum += weight
		for i, x := range g.x {
			mean[i] += weight * x
		}
	}
	for i := range mean {
		mean[i] /= sum
	}
	return mean
}
