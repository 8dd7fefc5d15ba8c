// Package weights reads the files that hold the engine's trained networks. They are
// a part of the program: one that cannot be read, or that lacks what a network needs,
// was built wrongly, and reading it panics.
//
// Layout, all integers little endian:
//
//	8 bytes   "HUBBUBW1": the format and its version
//	4 bytes   length of the header
//	header    JSON {"version", "tensors": [{"name","dtype","shape","offset"}], "meta"}
//	data      the tensors, row-major; offset counts from the first data byte
//	32 bytes  SHA-256 of everything before
//
// dtype is "f16" (IEEE binary16) or "f32". "meta" is not read.
package weights

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the networks in the binary
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
)

//go:embed engine.hubw
var embedded []byte

// Default returns the networks that are built into the program, read once.
var Default = sync.OnceValue(func() *File { return MustRead(embedded) })

//go:embed decoder-live.hubw
var liveDecoder []byte

//go:embed decoder-recording.hubw
var recordingDecoder []byte

// LiveDecoder and RecordingDecoder return the decoder of the live engine and that of
// the second pass. They belong to the networks of Default.
func LiveDecoder() *File      { return MustRead(liveDecoder) }
func RecordingDecoder() *File { return MustRead(recordingDecoder) }

const magic = "HUBBUBW1"

// File is a file that was read. It is immutable and may be shared by any number of
// goroutines.
type File struct {
	version string
	tensors map[string]tensor
}

type tensor struct {
	shape  []int
	values []float32
}

type header struct {
	Version string `json:"version"`
	Tensors []struct {
		Name   string `json:"name"`
		Dtype  string `json:"dtype"`
		Shape  []int  `json:"shape"`
		Offset int    `json:"offset"`
	} `json:"tensors"`
}

// MustRead reads a whole file. It panics if the file is damaged or of another format.
func MustRead(data []byte) *File {
	body := data[:max(0, len(data)-sha256.Size)]
	if sum := sha256.Sum256(body); !bytes.HasPrefix(body, []byte(magic)) || !bytes.Equal(sum[:], data[len(body):]) {
		panic("the networks in the program are damaged: build it again from a clean checkout")
	}
	rest := body[len(magic)+4:]
	n := binary.LittleEndian.Uint32(body[len(magic):])
	var h header
	if err := json.Unmarshal(rest[:n], &h); err != nil {
		panic(fmt.Sprintf("the header of the networks cannot be read: %v", err))
	}
	f := &File{version: h.Version, tensors: make(map[string]tensor, len(h.Tensors))}
	for _, t := range h.Tensors {
		count := 1
		for _, d := range t.Shape {
			count *= d
		}
		f.tensors[t.Name] = tensor{t.Shape, decode(rest[n:][t.Offset:], t.Dtype, count)}
	}
	return f
}

func decode(src []byte, dtype string, count int) []float32 {
	values := make([]float32, count)
	for i := range values {
		if dtype == "f16" {
			values[i] = fromHalf(binary.LittleEndian.Uint16(src[2*i:]))
		} else {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	}
	return values
}

// fromHalf converts an IEEE binary16.
func fromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10&31), uint32(h&0x3ff)
	switch exp {
	case 0: // zero and subnormals: frac * 2^-24
		v := math.Float32bits(float32(frac) * 0x1p-24)
		return math.Float32frombits(sign | v)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// Version is the version of the trained networks, as exported.
func (f *File) Version() string { return f.version }

// Tensor returns the values of a tensor, row-major, which the caller must not
// change. It panics if the file has none of that name and shape.
func (f *File) Tensor(name string, shape ...int) []float32 {
	t := f.tensors[name]
	if t.values == nil || !slices.Equal(t.shape, shape) {
		panic(fmt.Sprintf("the networks have no tensor %s of the shape %v", name, shape))
	}
	return t.values
}
