package protocol

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// The audio format of a stream: pcm_f32le, 16 kHz, mono, 100 ms per chunk.
const (
	SampleRate    = 16000
	ChunkSamples  = 1600
	ChunkBytes    = 4 * ChunkSamples // 6400
	ChunkDuration = 100 * time.Millisecond
)

// The range of the latency of a server.
const (
	MinLatency = 500 * time.Millisecond
	MaxLatency = 5 * time.Second
)

// MaxSpeakers is the maximum number of speakers of a stream.
const MaxSpeakers = 8

var (
	// ErrChunkSize is the error of an audio frame that is not ChunkBytes long.
	// Servers send its text.
	ErrChunkSize = errors.New("Invalid chunk size")
	// ErrSampleValue is the error of an audio frame with a NaN or an infinity.
	//lint:ignore ST1005 a server sends this text as it is
	ErrSampleValue = errors.New("Chunk holds samples that are not finite; it counts as 100 ms of silence")
)

// AppendChunk appends samples to dst in the format of an audio frame.
func AppendChunk(dst []byte, samples []float32) []byte {
	for _, s := range samples {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(s))
	}
	return dst
}

// DecodeChunk decodes one audio frame into dst, of length ChunkSamples. After
// ErrSampleValue dst is silence; after ErrChunkSize it is unchanged.
func DecodeChunk(dst []float32, frame []byte) error {
	if len(frame) != ChunkBytes {
		return ErrChunkSize
	}
	for i := range dst[:ChunkSamples] {
		s := math.Float32frombits(binary.LittleEndian.Uint32(frame[4*i:]))
		if s-s != 0 { // NaN or infinite
			clear(dst)
			return ErrSampleValue
		}
		dst[i] = s
	}
	return nil
}

// ChunkBefore is the number of the chunk with the last sample before a time of a
// stream's clock, in seconds; -1 for the start of the stream. An event with that
// timestamp could not have been decided before that chunk was sent.
func ChunkBefore(seconds float64) int64 {
	const tolerance = 1e-3 // of a chunk, below the resolution of timestamps
	return int64(min(math.Ceil(seconds/ChunkDuration.Seconds()-tolerance)-1, 1<<40))
}
