package clustering

import (
	"math"
	"slices"

	"hubbub/localserver/engine/decoder"
)

// Dim is the length of an embedding.
const Dim = 128

// FrameSeconds is the length of a frame of a Window, in seconds.
const FrameSeconds = 0.02

// Embedding is a speaker embedding of length 1. Two embeddings are compared by
// their cosine.
type Embedding [Dim]float32

// Dot is the cosine of two embeddings.
func (e *Embedding) Dot(o *Embedding) float64 {
	var a, b, c, d float32 // four sums, because each addition waits for the previous one
	for i := 0; i < Dim; i += 4 {
		a += e[i] * o[i]
		b += e[i+1] * o[i+1]
		c += e[i+2] * o[i+2]
		d += e[i+3] * o[i+3]
	}
	return float64(a + b + c + d)
}

// Unit is a vector scaled to length 1; zeros stay zeros.
func Unit[T int8 | int16 | float32 | float64](v *[Dim]T) (e Embedding) {
	norm := 0.0
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	if norm = math.Sqrt(norm); norm > 0 {
		for i, x := range v {
			e[i] = float32(float64(x) / norm)
		}
	}
	return e
}

// Window is the output of the networks for the last seconds of audio. It ends
// at the newest sample. Frames are 20 ms.
type Window struct {
	// First is the number of the window's first frame, counted from the start
	// of the stream.
	First int
	// SpeechProbability is the probability of speech in each frame.
	SpeechProbability []float32
	// Speakers are the local speakers. Their order is arbitrary and changes
	// from window to window.
	Speakers []LocalSpeaker
	// Multiscale are new ones, in order and MultiscaleHop apart, and later computations
	// of earlier ones.
	Multiscale []MultiscaleEmbedding
}

// MultiscaleHop is the distance of two multiscale embeddings, in steps of 40 ms.
const MultiscaleHop = 4

// MultiscaleEmbedding is single-speaker speech around a step of 40 ms, whoever talks,
// at the scales that the decoder compares.
type MultiscaleEmbedding struct {
	Step int // from the start of the stream
	// Embeddings are those of a shorter and a longer span. Where
	// nobody talks alone, they are zeros.
	Embeddings [decoder.Scales]Embedding
}

// LocalSpeaker is one speaker output of the segmentation network.
type LocalSpeaker struct {
	// Activity is the probability in each frame that this local speaker talks.
	Activity []float32
	// Segments divide the window in time, in order: at least one. A local
	// speaker has several because the network sometimes puts two people into
	// one output, or one person into two.
	Segments []Segment
}

// Segment is a part of a local speaker with an embedding of its own, computed
// from about a second of single-speaker speech.
type Segment struct {
	// From and To bound the frames of the window whose activity belongs to the
	// segment; To is excluded.
	From, To int
	// Centre is the middle of the single-speaker speech behind Embedding, in
	// frames of the window.
	Centre int
	// Duration is the length of that speech in seconds.
	Duration  float64
	Embedding Embedding
}

// Span is the single-speaker speech behind a segment's embedding, in frames of
// the stream.
func (w *Window) Span(s *Segment) (from, to int) {
	half := int(s.Duration / FrameSeconds / 2)
	return w.First + s.Centre - half, w.First + s.Centre + half
}

// Clone returns a deep copy.
func (w *Window) Clone() *Window {
	c := &Window{First: w.First, SpeechProbability: slices.Clone(w.SpeechProbability), Speakers: slices.Clone(w.Speakers), Multiscale: slices.Clone(w.Multiscale)}
	for i := range c.Speakers {
		c.Speakers[i].Activity = slices.Clone(c.Speakers[i].Activity)
		c.Speakers[i].Segments = slices.Clone(c.Speakers[i].Segments)
	}
	return c
}
