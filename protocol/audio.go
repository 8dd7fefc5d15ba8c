package protocol

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// The audio format of a stream: raw pcm_f32le, 16 kHz, mono, 100 ms a frame.
const (
	SampleRate    = 16000
	ChunkSamples  = 1600
	ChunkBytes    = 4 * ChunkSamples // 6400
	ChunkDuration = 100 * time.Millisecond
)

// LatencyRange bounds the latency that a built-in server may be asked for.
const (
	MinLatency = 500 * time.Millisecond
	MaxLatency = 5 * time.Second
)

// MaxSpeakers is how many speakers a stream tracks at most.
const MaxSpeakers = 8

var (
	// ErrChunkSize is an audio frame that is not ChunkBytes long. Its text is
	// the one that the service sends.
	ErrChunkSize = errors.New("Invalid chunk size")
	// ErrSampleValue is an audio frame that holds a NaN or an infinity.
	//lint:ignore ST1005 a server sends this text as it is
	ErrSampleValue = errors.New("Chunk holds samples that are not finite; it counts as 100 ms of silence")
)

// AppendChunk appends the wire form of samples to dst.
func AppendChunk(dst []byte, samples []float32) []byte {
	for _, s := range samples {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(s))
	}
	return dst
}

// DecodeChunk fills dst, of length ChunkSamples, from one audio frame.
// With ErrSampleValue dst is all zeros; with ErrChunkSize it is untouched.
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
