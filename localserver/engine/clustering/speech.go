package clustering

import (
	"encoding/binary"
	"math"
)

// Speech is the embedding of about a second of one person's speech: what a
// snapshot and a voiceprint consist of.
type Speech struct {
	Embedding Embedding
	Duration  float64 // seconds of single-speaker speech behind Embedding
}

// SpeechBytes is the length of a written Speech: components of the embedding as
// 16-bit integers, which moves a cosine by a few millionths, and the duration as
// a 32-bit float, all little-endian.
const SpeechBytes = 2*Dim + 4

// embeddingScale is the integer that stands for 1.
const embeddingScale = 32767

// Append writes the speech to out.
func (s *Speech) Append(out []byte) []byte {
	for _, x := range s.Embedding {
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(math.Round(float64(min(max(x, -1), 1))*embeddingScale))))
	}
	return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(s.Duration)))
}

// ParseSpeech reads a written Speech from the first SpeechBytes of raw; ok is
// false when they are not there or not valid. The embedding has length 1.
func ParseSpeech(raw []byte) (s Speech, ok bool) {
	if len(raw) < SpeechBytes {
		return s, false
	}
	var norm float64
	for k := range s.Embedding {
		x := float64(int16(binary.LittleEndian.Uint16(raw[2*k:])))
		s.Embedding[k] = float32(x)
		norm += x * x
	}
	norm = max(math.Sqrt(norm), 1)
	for k := range s.Embedding {
		s.Embedding[k] = float32(float64(s.Embedding[k]) / norm)
	}
	s.Duration = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[2*Dim:])))
	return s, validSum(s.Duration)
}

// Centroid is the mean of speech, weighted by duration and scaled to length 1,
// and the duration of all of it in seconds.
func Centroid(speech []Speech) (centroid Embedding, duration float64) {
	var s speaker
	for i := range speech {
		s.add(&speech[i].Embedding, speech[i].Duration)
	}
	s.normalise()
	return s.centroid.Embedding, s.duration
}

// Voice is what is known of speaker k after w, the last window: the centroid of its
// stored segments and of those of the window that are not stored yet, and the
// seconds of speech behind it; 0 for a speaker that was merged into another one.
func (c *Clusterer) Voice(w *Window, k int) (centroid Embedding, duration float64) {
	s := c.speakers[k]
	if s.merged() {
		return centroid, 0
	}
	for i := range c.segments {
		if from, _ := w.Span(c.segments[i].Segment); c.assigned[i] == k && from >= c.memory.end {
			s.add(&c.segments[i].Embedding, c.segments[i].Duration)
		}
	}
	s.normalise()
	return s.centroid.Embedding, s.duration
}

// Speech returns the stored speech of speaker k in order of time.
func (c *Clusterer) Speech(k int) (speech []Speech) {
	for i := range c.memory.segments {
		if s := &c.memory.segments[i]; s.speaker == k {
			speech = append(speech, Speech{s.embedding.Embedding, s.duration})
		}
	}
	return speech
}
