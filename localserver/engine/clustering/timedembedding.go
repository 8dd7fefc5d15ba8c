package clustering

import (
	"encoding/binary"
	"math"
)

// TimedEmbedding is an embedding of one person's speech and how much speech is
// behind it. Snapshots and voiceprints consist of them.
type TimedEmbedding struct {
	Embedding Embedding
	Duration  float64 // seconds of single-speaker speech behind Embedding
}

// TimedEmbeddingBytes is the length of a written TimedEmbedding: components of the
// embedding as 16-bit integers, which moves a cosine by a few millionths, and the
// duration as a 32-bit float, all little-endian.
const TimedEmbeddingBytes = 2*Dim + 4

// embeddingScale is the integer that stands for 1.
const embeddingScale = 32767

// Append writes s to out.
func (s *TimedEmbedding) Append(out []byte) []byte {
	for _, x := range s.Embedding {
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(math.Round(float64(min(max(x, -1), 1))*embeddingScale))))
	}
	return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(s.Duration)))
}

// ParseTimedEmbedding reads a written TimedEmbedding from the first
// TimedEmbeddingBytes of raw; ok is false when they are not there or not valid. The
// embedding has length 1.
func ParseTimedEmbedding(raw []byte) (s TimedEmbedding, ok bool) {
	if len(raw) < TimedEmbeddingBytes {
		return s, false
	}
	var v [Dim]int16
	for k := range v {
		v[k] = int16(binary.LittleEndian.Uint16(raw[2*k:]))
	}
	s.Embedding = Unit(&v)
	s.Duration = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[2*Dim:])))
	return s, validSum(s.Duration)
}

// Centroid is that of speaker k after w, the last window: of its stored segments and
// of those of the window that are not stored yet. That of a speaker that was merged into
// another one is zeros.
func (c *Clusterer) Centroid(w *Window, k int) TimedEmbedding {
	s := c.speakers[k]
	for i := range c.segments {
		if from, _ := w.Span(c.segments[i].Segment); c.assigned[i] == k && from >= c.memory.end {
			s.add(&c.segments[i].Embedding, c.segments[i].Duration)
		}
	}
	return TimedEmbedding{Unit(&s.sum), s.duration}
}

// StoredCentroid is that of the stored segments of speaker k.
func (c *Clusterer) StoredCentroid(k int) TimedEmbedding {
	s := c.memory.speaker(k)
	return TimedEmbedding{Unit(&s.sum), s.duration}
}
