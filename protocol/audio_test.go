package protocol

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol/testkit"
)

func TestChunkRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Float32(), ChunkSamples, ChunkSamples).Draw(t, "samples")
		frame := AppendChunk(nil, in)
		if len(frame) != ChunkBytes {
			t.Fatalf("%d bytes", len(frame))
		}
		out := make([]float32, ChunkSamples)
		testkit.NoError(t, DecodeChunk(out, frame))
		if again := AppendChunk(nil, out); !bytes.Equal(again, frame) {
			t.Fatal("decoding changed the samples")
		}
	})
}

func TestChunkIsLittleEndianFloat32(t *testing.T) {
	got := AppendChunk([]byte{9}, []float32{1, -0.5})
	if want := []byte{9, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf}; !bytes.Equal(got, want) {
		t.Errorf("got % x, want % x", got, want)
	}
}

func TestDecodeChunkRefuses(t *testing.T) {
	for _, n := range []int{0, 4, ChunkBytes - 1, ChunkBytes + 1, 2 * ChunkBytes} {
		if err := DecodeChunk(make([]float32, ChunkSamples), make([]byte, n)); !errors.Is(err, ErrChunkSize) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		in := make([]float32, ChunkSamples)
		in[0], in[ChunkSamples-1] = 0.5, float32(v)
		out := make([]float32, ChunkSamples)
		if err := DecodeChunk(out, AppendChunk(nil, in)); !errors.Is(err, ErrSampleValue) {
			t.Errorf("%v: %v", v, err)
		}
		testkit.Equal(t, out[0], 0, v, "the chunk is not silence")
	}
}

func TestChunkBefore(t *testing.T) {
	for seconds, want := range map[float64]int64{0: -1, 0.001: 0, 0.1: 0, 0.100001: 0, 0.101: 1, 0.2: 1, 0.3: 2, 12.34: 123, 1e300: 1 << 40} {
		testkit.Equal(t, ChunkBefore(seconds), want, "the chunk before", seconds, "s")
	}
}
