package voiceprint

import (
	_ "embed"
	"math"
	"slices"
	"sync"

	"hubbub/localserver/engine/clustering"
)

// The cohort is embeddings drawn at random from a normal distribution with the mean
// and covariance of those of people of the training data, as recorded and as from
// across a room: none is a person's. A cosine says more when it is compared with the
// cosines of the speaker with the cohort: score normalisation (Matejka et al.,
// "Analysis of score normalization in multilingual speaker recognition", Interspeech
// 2017), here of the speaker's side alone and without the division by standard
// deviations, which did not help.

// cohortBytes are the embeddings, one after the other, a byte for each component.
// `make calibrate` writes them; they belong to the weights.
//
//go:embed cohort.bin
var cohortBytes []byte

var cohort = clustering.CohortEmbeddings(cohortBytes)

var projectedCohort = sync.OnceValue(func() []clustering.Embedding {
	out := make([]clustering.Embedding, len(cohort))
	for i := range cohort {
		out[i] = project(&cohort[i])
	}
	return out
})

// nearest is how many embeddings of the cohort count: the most similar ones.
const nearest = 15

// cohortScale is the integer that stands for 1; components of embeddings are much
// smaller.
const cohortScale = 320

// AppendCohort appends to out an embedding of the cohort.
func AppendCohort(out []byte, e *clustering.Embedding) []byte {
	for _, x := range e {
		out = append(out, byte(int8(min(max(math.Round(float64(x)*cohortScale), -127), 127))))
	}
	return out
}

// toCohort is how similar an embedding is to the nearest people of a cohort: the
// mean of the cosines.
func toCohort(e *clustering.Embedding, cohort []clustering.Embedding) (mean float64) {
	all := make([]float64, len(cohort))
	for i := range cohort {
		all[i] = -cohort[i].Dot(e)
	}
	slices.Sort(all)
	all = all[:min(nearest, len(all))]
	for _, x := range all {
		mean -= x / float64(len(all))
	}
	return mean
}
