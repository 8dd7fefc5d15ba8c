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
	// searchStep is how far the first tries lie from the thresholds as set: one
	// standard deviation of their logarithms.
	searchStep = 0.06
	// searchTries is how many settings are compared before the next ones are drawn.
	searchTries = 14
)

// guess is one setting, and what it gives.
type guess struct {
	x []float64
	t trial
}

// search looks for better thresholds with CMA-ES over their logarithms. What it
// tells after each round is the middle of the better half and not the best of all
// tries: the goal moves in steps, a person found or not, and the luckiest setting
// of hundreds is lucky on these recordings only.
func (m *meter) search(ctx context.Context, p clustering.Params, all []heard, sets int, w io.Writer) error {
	names := slices.DeleteFunc(clustering.Names(), func(n string) bool {
		return slices.ContainsFunc(m.keep, func(k string) bool { return strings.EqualFold(k, n) })
	})
	if len(names) == 0 {
		return usagef("leave some out of --keep", "there is nothing to search")
	}
	at := func(x []float64) clustering.Params {
		q := p
		for i, name := range names {
			was, _ := p.Get(name)
			_ = q.Set(name, was*math.Exp(searchStep*x[i])) // one of Names
		}
		return q
	}
	var mu sync.Mutex // of what follows: tries run side by side
	var round []guess
	var failed error
	rounds := 0
	try := func(x []float64) float64 {
		t, err := trial{}, ctx.Err()
		if err == nil {
			t, err = m.try(at(x), all, sets)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
			return math.NaN()
		}
		if round = append(round, guess{slices.Clone(x), t}); len(round) == searchTries {
			rounds++
			tell(w, rounds, round, names, at)
			round = round[:0]
		}
		return t.goal
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
		&optimize.Settings{MajorIterations: m.rounds, Concurrent: m.settings.jobs, Converger: optimize.NeverTerminate{}},
		&optimize.CmaEsChol{InitStepSize: 1, Population: searchTries, ForgetBest: true, Src: rand.NewPCG(1, 2)})
	return err
}

// tell writes how a round went, and the middle of its better half for --set.
func tell(w io.Writer, n int, round []guess, names []string, at func([]float64) clustering.Params) {
	slices.SortFunc(round, func(a, b guess) int { return cmp.Compare(a.t.goal, b.t.goal) })
	mean := 0.0
	for _, g := range round {
		mean += g.t.goal / float64(len(round))
	}
	fmt.Fprintf(w, "%3d mean %6.2f best %v\n    ", n, mean, round[0].t)
	q := at(middle(round[:len(round)/2]))
	for i, name := range names {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		v, _ := q.Get(name)
		fmt.Fprintf(w, "%s=%.4f", name, v)
	}
	fmt.Fprintln(w)
}

// middle is the mean of settings in the order of what they give, the first ones
// counting for more, as CMA-ES takes it.
func middle(better []guess) []float64 {
	centre, sum := make([]float64, len(better[0].x)), 0.0
	for k, g := range better {
		weight := math.Log(float64(len(better))+0.5) - math.Log(float64(k+1))
		sum += weight
		for i, x := range g.x {
			centre[i] += weight * x
		}
	}
	for i := range centre {
		centre[i] /= sum
	}
	return centre
}
