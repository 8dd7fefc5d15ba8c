package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/voiceprint"
)

const (
	// cohortSize is how many embeddings a cohort has.
	cohortSize = 160
	// cohortPeople is how many people the embeddings are drawn from, at least: those
	// of a few would be like these.
	cohortPeople = 50
)

// writeCohort makes the cohort of the voiceprints from the speech of people,
// X.wav each, as localserver/engine/training/enrolment.py writes it.
func (ev *evaluator) writeCohort(ctx context.Context, out io.Writer) error {
	names, _ := fs.Glob(os.DirFS(ev.people), "*.wav") // the pattern is valid
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".wav")
	}
	people, err := makeVoiceprints(ctx, ev.people, names)
	if err != nil {
		return err
	}
	if len(people) < cohortPeople {
		return fmt.Errorf("%s: %d people are too few for a cohort", ev.people, len(people))
	}
	var all []clustering.Embedding
	for _, name := range slices.Sorted(maps.Keys(people)) {
		v := people[name]
		asRecorded, inFarField := v.Embeddings()
		all = append(all, asRecorded, inFarField)
	}
	var raw []byte
	for _, e := range drawCohort(all) {
		raw = voiceprint.AppendCohort(raw, &e)
	}
	fmt.Fprintf(out, "%d embeddings drawn from those of %d people\n", cohortSize, len(people))
	return os.WriteFile(ev.cohort, raw, 0o644)
}

// drawCohort draws embeddings from the normal distribution with the mean and the
// covariance of all. Each is the mean plus a random part of every difference to it,
// so none is a person's.
func drawCohort(all []clustering.Embedding) []clustering.Embedding {
	var mean [clustering.Dim]float64
	for i := range all {
		for k, x := range all[i] {
			mean[k] += float64(x) / float64(len(all))
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	drawn := make([]clustering.Embedding, cohortSize)
	for n := range drawn {
		sum := mean
		for i := range all {
			part := r.NormFloat64() / math.Sqrt(float64(len(all)-1))
			for k, x := range all[i] {
				sum[k] += part * (float64(x) - mean[k])
			}
		}
		drawn[n] = clustering.Unit(&sum)
	}
	return drawn
}
