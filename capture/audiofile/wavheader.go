package audiofile

import (
	"encoding/binary"
	"math"
	"slices"
)

// WAVHeaderBytes is the length of a WAVHeader.
const WAVHeaderBytes = 44

// WAVHeader is the header of a WAV file with so many bytes of samples: PCM with 16
// bits, little-endian, 16 kHz, mono. Beyond 4 GiB (37 hours) the sizes stay at their
// maximum, which readers interpret as "until the end".
func WAVHeader(sampleBytes int64) []byte {
	clip := func(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }
	b := make([]byte, 0, WAVHeaderBytes)
	le := binary.LittleEndian
	b = append(b, "RIFF"...)
	b = le.AppendUint32(b, clip(sampleBytes+WAVHeaderBytes-8))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, tagPCM)
	b = le.AppendUint16(b, 1)
	b = le.AppendUint32(b, SampleRate)
	b = le.AppendUint32(b, 2*SampleRate)
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	return le.AppendUint32(b, clip(sampleBytes))
}

// WAV is samples as a WAV file, with 16 bits.
func WAV(samples []float32) []byte {
	return AppendPCM16(WAVHeader(int64(2*len(samples))), samples)
}

// AppendPCM16 appends samples with 16 bits, little-endian, as they follow a WAVHeader.
func AppendPCM16(b []byte, samples []float32) []byte {
	b = slices.Grow(b, 2*len(samples))
	for _, x := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(pcm16(x)))
	}
	return b
}

// pcm16 is a sample with 16 bits. Values outside -1..1 are clipped, and NaN becomes 0.
func pcm16(x float32) int16 {
	if x != x {
		return 0
	}
	return int16(max(math.MinInt16, min(math.MaxInt16, math.RoundToEven(float64(x)*32768))))
}
