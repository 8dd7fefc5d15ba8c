package clustering

import "math"

// Dim is the length of an embedding.
const Dim = 128

// Embedding is a unit vector that stands for how a voice sounds. Two of them
// are compared by their dot product, the cosine of their angle.
type Embedding [Dim]float32

// Dot is the cosine of the angle between two unit vectors.
func (e *Embedding) Dot(o *Embedding) float64 {
	var sum float32
	for i, x := range e {
		sum += x * o[i]
	}
	return float64(sum)
}

// voice is a speaker as the session knows it: a weighted mean of the
// embeddings that were taken for this speaker. It is never forgotten and never
// merged with another one, because its label may have been told already.
type voice struct {
	sum    [Dim]float64
	weight float64   // seconds of lone speech behind sum, at most Params.Memory
	centre Embedding // sum, scaled to length 1
}

// learn moves the voice towards e, heard for so many new seconds. The memory
// bounds the weight of the past, so that a voice that changes, because its
// speaker moved or the line got worse, is still followed after an hour.
func (v *voice) learn(e *Embedding, seconds, memory float64) {
	var norm float64
	for i, x := range e {
		v.sum[i] += float64(x) * seconds
		norm += v.sum[i] * v.sum[i]
	}
	if v.weight += seconds; v.weight > memory {
		shrink := memory / v.weight
		for i := range v.sum {
			v.sum[i] *= shrink
		}
		norm *= shrink * shrink
		v.weight = memory
	}
	if norm = math.Sqrt(norm); norm > 0 {
		for i, x := range v.sum {
			v.centre[i] = float32(x / norm)
		}
	}
}
