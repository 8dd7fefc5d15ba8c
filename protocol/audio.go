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

// WAVHeaderBytes is the length of a WAVHeader.
const WAVHeaderBytes = 44

// WAVHeader is the header of a WAV file with so many bytes of samples: PCM with 16
// bits, little-endian, 16 kHz, mono. From 37 hours on it states the longest length
// that the format has.
func WAVHeader(sampleBytes int64) []byte {
	length := uint32(min(sampleBytes, math.MaxUint32-WAVHeaderBytes))
	h := append(make([]byte, 0, WAVHeaderBytes), "RIFF"...)
	h = binary.LittleEndian.AppendUint32(h, length+WAVHeaderBytes-8)
	h = append(h, "WAVEfmt "...)
	for _, v := range []uint32{16, 1 | 1<<16, SampleRate, 2 * SampleRate, 2 | 16<<16} { // format 1, channels 1; block 2, bits 16
		h = binary.LittleEndian.AppendUint32(h, v)
	}
	h = append(h, "data"...)
	return binary.LittleEndian.AppendUint32(h, length)
}

// ChunkBefore is the number of the chunk with the last sample before a time of a
// stream's clock, in seconds; -1 for the start of the stream. An event with that
// timestamp could not have been decided before that chunk was sent.
func ChunkBefore(seconds float64) int64 {
	const tolerance = 1e-3 // of a chunk, below the resolution of timestamps
	return int64(min(math.Ceil(seconds/ChunkDuration.Seconds()-tolerance)-1, 1<<40))
}
