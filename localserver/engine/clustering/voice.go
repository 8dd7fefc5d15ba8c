package clustering

import "math"

// Dim is the length of an embedding.
const Dim = 128

// Embedding is a unit vector that stands for how a voice sounds. Two of them
// are compared by their dot product, the cosine of their angle.
type Embedding [Dim]float32

// Dot is the cosine of the angle between two unit vectors.
func (e *Embedding) Dot(o *Embedding) float64 {
	var a, b, c, d float32 // one sum alone would wait for itself at every step
	for i := 0; i < Dim; i += 4 {
		a += e[i] * o[i]
		b += e[i+1] * o[i+1]
		c += e[i+2] * o[i+2]
		d += e[i+3] * o[i+3]
	}
	return float64(a + b + c + d)
}

// voice is a speaker as the session knows it: the weighted mean of the
// embeddings that were taken for this speaker. It is never forgotten.
type voice struct {
	sum    [Dim]float64
	weight float64   // seconds of lone speech behind sum
	centre Embedding // sum, scaled to length 1
	self   float64   // mean cosine of its pieces with centre; 0 = not known yet
}

// gone tells whether the voice was another one's and has been taken for it since.
func (v *voice) gone() bool { return v.weight == 0 }

// add takes in an embedding of so many seconds; scale must follow.
func (v *voice) add(e *Embedding, seconds float64) {
	for i, x := range e {
		v.sum[i] += float64(x) * seconds
	}
	v.weight += seconds
}

// scale brings the centre up to date.
func (v *voice) scale() {
	var norm float64
	for _, x := range v.sum {
		norm += x * x
	}
	if norm = math.Sqrt(norm); norm > 0 {
		for i, x := range v.sum {
			v.centre[i] = float32(x / norm)
		}
	}
}
