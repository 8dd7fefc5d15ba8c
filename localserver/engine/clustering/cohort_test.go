package clustering

import (
	"math"
	"os"
	"testing"

	"hubbub/localserver/engine/nn"
)

// Made-up people are unlike all real ones. Here everybody has the typical similarity
// to the cohort, so that similarities are cosines.
func TestMain(m *testing.M) {
	bias := make([]float32, 16)
	for i := range bias {
		bias[i] = cohortTypical
	}
	cohort = func() *nn.Matrix { return nn.Dense(Dim, len(bias), make([]float32, len(bias)*Dim), bias) }
	os.Exit(m.Run())
}

// plain is an embedding with the typical similarity to the cohort.
func plain(e Embedding) normalised { return normalised{Embedding: e} }

// The similarity of two embeddings falls by half of what each is more similar to the
// cohort than usual.
func TestSimilarityIsNormalised(t *testing.T) {
	was := cohort
	defer func() { cohort = was }()
	members := CohortEmbeddings(cohortBytes)
	if len(members) != 768 {
		t.Fatalf("%d members", len(members))
	}
	cohort = func() *nn.Matrix { return cohortMatrix(members) }
	far := plain(unit(func(i int) float64 { return math.Sin(float64(i * i)) })) // nobody
	near := plain(members[7])
	for _, e := range []*normalised{&far, &near} {
		e.normalise()
		var cosines []float64
		for i := range members {
			cosines = append(cosines, e.Dot(&members[i]))
		}
		want := 0.0
		for range cohortNearest {
			top := 0
			for i, x := range cosines {
				if x > cosines[top] {
					top = i
				}
			}
			want += cosines[top] / cohortNearest
			cosines[top] = -1
		}
		want = max(want, cohortLeast)
		if got := 2*e.offset + cohortTypical; math.Abs(got-want) > 1e-4 {
			t.Errorf("similarity to the cohort %.4f, want %.4f", got, want)
		}
	}
	if !(near.offset > 0 && far.offset < 0) {
		t.Errorf("offsets of a member %.3f and of nobody %.3f", near.offset, far.offset)
	}
	if got, want := near.similarity(&far), near.Dot(&far.Embedding)-near.offset-far.offset; got != want {
		t.Errorf("similarity %.3f, want %.3f", got, want)
	}
}
