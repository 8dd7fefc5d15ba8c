package offline

import (
	"math"

	"hubbub/localserver/engine/clustering"
)

// voice is an embedding in a quarter of its memory: values in steps of voiceUnit.
type voice [clustering.Dim]int8

// voiceUnit is the unit of values up to 0.5, which few of an embedding exceed.
const voiceUnit = 0.5 / 127

func voiceOf(e *clustering.Embedding) (v voice) {
	for i, x := range e {
		v[i] = int8(math.Round(min(max(float64(x)/voiceUnit, -127), 127)))
	}
	return v
}

// embedding is the embedding, of length 1.
func (v *voice) embedding() (e clustering.Embedding) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i, x := range v {
		e[i] = float32(float64(x) / max(math.Sqrt(sum), 1))
	}
	return e
}

// dot is the cosine with an embedding.
func (v *voice) dot(e *clustering.Embedding) float64 {
	var a, b, c, d float32 // four sums, because each addition waits for the previous one
	for i := 0; i < clustering.Dim; i += 4 {
		a += float32(v[i]) * e[i]
		b += float32(v[i+1]) * e[i+1]
		c += float32(v[i+2]) * e[i+2]
		d += float32(v[i+3]) * e[i+3]
	}
	return float64(a+b+c+d) * voiceUnit
}
