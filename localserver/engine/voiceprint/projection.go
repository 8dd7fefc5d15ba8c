package voiceprint

import (
	_ "embed"
	"encoding/binary"
	"math"
	"sync"

	"hubbub/localserver/engine/clustering"
)

// Two recordings of one person differ by the microphone, the line, the room and what
// is said. The projection scales the directions in which embeddings differ for such
// reasons down, so that the cosine counts the others more: within-class covariance
// normalisation (Hatch et al., "Within-class covariance normalization for SVM-based
// speaker recognition", Interspeech 2006). Speakers of one session are compared
// without it: they share the line.

// projectionBytes are the rows of the matrix, float32, little-endian, as
// training/projection.py writes them for `make calibrate`; they belong to the weights.
//
//go:embed projection.bin
var projectionBytes []byte

var projection = sync.OnceValue(func() []clustering.Embedding {
	rows := make([]clustering.Embedding, clustering.Dim)
	for i := range rows {
		for j := range rows[i] {
			rows[i][j] = math.Float32frombits(binary.LittleEndian.Uint32(projectionBytes[4*(i*clustering.Dim+j):]))
		}
	}
	return rows
})

// project is the projection of an embedding, of length 1.
func project(e *clustering.Embedding) (out clustering.Embedding) {
	rows := projection()
	for i := range rows {
		out[i] = float32(rows[i].Dot(e))
	}
	norm := max(math.Sqrt(out.Dot(&out)), 1e-12)
	for i := range out {
		out[i] /= float32(norm)
	}
	return out
}
