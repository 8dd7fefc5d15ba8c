package offline

import (
	"math"

	"hubbub/localserver/engine/clustering"
)

// quantisedEmbedding is an embedding in a quarter of its memory: values in steps of
// embeddingUnit.
type quantisedEmbedding [clustering.Dim]int8

// embeddingUnit is the unit of values up to 0.5, which few of an embedding exceed.
const embeddingUnit = 0.5 / 127

func quantiseEmbedding(e *clustering.Embedding) (q quantisedEmbedding) {
	for i, x := range e {
		q[i] = int8(math.Round(min(max(float64(x)/embeddingUnit, -127), 127)))
	}
	return q
}

// embedding is the embedding, of length 1.
func (q *quantisedEmbedding) embedding() clustering.Embedding {
	return clustering.Unit((*[clustering.Dim]int8)(q))
}

// dot is the cosine with an embedding.
func (q *quantisedEmbedding) dot(e *clustering.Embedding) float64 {
	var a, b, c, d float32 // four sums, because each addition waits for the previous one
	for i := 0; i < clustering.Dim; i += 4 {
		a += float32(q[i]) * e[i]
		b += float32(q[i+1]) * e[i+1]
		c += float32(q[i+2]) * e[i+2]
		d += float32(q[i+3]) * e[i+3]
	}
	return float64(a+b+c+d) * embeddingUnit
}
