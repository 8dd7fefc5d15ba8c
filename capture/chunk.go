// Package capture turns a microphone, a file, standard input or the built-in
// demo into one kind of thing: chunks of 100 ms, 16 kHz, mono, float32, stamped
// with the capture clock.
//
// Begin with Open in source.go, which opens a Source: mic.go is a device, pair.go two of
// them, decoded.go what is decoded, from file.go, stdin.go or ffmpeg.go. chunkreader.go
// makes chunks of it. reopener.go and outage.go bridge the time in which a device delivers
// nothing.
package capture

import (
	"slices"
	"time"

	"hubbub/capture/audiofile"
)

// The format of all audio that this package delivers.
const (
	SampleRate    = audiofile.SampleRate   // samples per second
	ChunkSamples  = 1600                   // samples in one chunk
	ChunkDuration = 100 * time.Millisecond // audio in one chunk
)

// Chunk is 100 ms of audio. Its samples are not changed after delivery, so that
// several goroutines may read them.
type Chunk struct {
	// Seq counts chunks from 0; the capture clock of the first sample is
	// Seq * ChunkDuration. A gap in Seq is audio that was dropped.
	Seq int64
	// Samples holds ChunkSamples values, nominally in -1..1. The last chunk
	// of an input is padded with zeros.
	Samples []float32
	// Tracks is the audio of all tracks, one after the other, each with ChunkSamples
	// values; Samples is their mean.
	Tracks []float32
	// Valid is how many of Samples are audio; below ChunkSamples only in the
	// last chunk of an input.
	Valid int
	// Level is that of the Valid samples.
	Level Level
}

// Apart are the samples of each track.
func (c Chunk) Apart() [][]float32 { return slices.Collect(slices.Chunk(c.Tracks, ChunkSamples)) }

// Level is the level of some audio, linear, 1 = full scale.
type Level struct {
	RMS  float32
	Peak float32
}
