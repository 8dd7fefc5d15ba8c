package clustering

import (
	_ "embed"
	"math"
	"sync"

	"hubbub/localserver/engine/nn"
)

// A cosine says more when it is compared with those of other people: two embeddings
// that are similar to many are of one person only if they are more similar to each
// other. So the similarity of two embeddings is their cosine less half the
// similarity of each to a cohort, the mean cosine with its nearest members: symmetric
// score normalisation without division by standard deviations (Matejka et al.,
// "Analysis of score normalization in multilingual speaker recognition", Interspeech
// 2017). It makes one threshold fit more recordings and channels.

// cohortBytes are the members, one after the other, as CohortEmbeddings reads them.
// They are means of groups of people of the training data, clean, through simulated
// channels and rooms, and a third as conference software sends them, made by training/cohort.py;
// they belong to the weights.
//
//go:embed cohort.bin
var cohortBytes []byte

const (
	// cohortNearest is how many members of the cohort count: the most similar ones.
	cohortNearest = 5
	// cohortTypical is about the similarity of a speaker's centroid to the cohort.
	// Similarities are raised by it, so that they have the scale of a cosine.
	cohortTypical = 0.597
	// cohortLeast bounds the similarity to the cohort from below: a voice or a channel
	// that the cohort does not have is far from all of it, which says nothing about
	// other people on that channel.
	cohortLeast = 0.518
)

// cohort is the matrix of the members' embeddings.
var cohort = sync.OnceValue(func() *nn.Matrix { return cohortMatrix(CohortEmbeddings(cohortBytes)) })

func cohortMatrix(members []Embedding) *nn.Matrix {
	flat := make([]float32, 0, len(members)*Dim)
	for i := range members {
		flat = append(flat, members[i][:]...)
	}
	return nn.Dense(Dim, len(members), flat, nil)
}

// CohortEmbeddings reads embeddings, Dim bytes each, of which each component is a signed
// byte, in any unit.
func CohortEmbeddings(raw []byte) (all []Embedding) {
	for ; len(raw) >= Dim; raw = raw[Dim:] {
		var e Embedding
		var norm float64
		for i := range e {
			e[i] = float32(int8(raw[i]))
			norm += float64(e[i]) * float64(e[i])
		}
		for i := range e {
			e[i] /= float32(math.Sqrt(norm))
		}
		all = append(all, e)
	}
	return all
}

// normalised is an embedding whose similarities are normalised.
type normalised struct {
	Embedding
	offset float64 // half its similarity to the cohort, less that of cohortTypical
}

// similarity compares two embeddings; it has the scale of a cosine.
func (a *normalised) similarity(b *normalised) float64 {
	return a.Dot(&b.Embedding) - a.offset - b.offset
}

// normalise computes the offset.
func (a *normalised) normalise() {
	a.offset = (max(CohortSimilarity(&a.Embedding), cohortLeast) - cohortTypical) / 2
}

// CohortSimilarity is the mean cosine of an embedding with the nearest members of the
// cohort.
func CohortSimilarity(e *Embedding) float64 {
	m := cohort()
	var cosines [1024]float32 // more than the cohort has members
	m.Apply(nn.Rows{Groups: 1, N: 1, Src: e[:], SrcStride: Dim, Dst: cosines[:m.Padded()], DstStride: m.Padded()})
	var top [cohortNearest]float32 // the largest first; all are positive
	for _, x := range cosines[:m.N] {
		if x <= top[cohortNearest-1] {
			continue
		}
		for j, y := range top {
			if x > y {
				x, top[j] = y, x
			}
		}
	}
	sum := 0.0
	for _, x := range top {
		sum += float64(x)
	}
	return sum / cohortNearest
}
