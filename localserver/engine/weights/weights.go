// Package weights reads the file that holds the engine's trained networks.
//
// Layout, all integers little endian:
//
//	8 bytes   "HUBBUBW1": the format and its version
//	4 bytes   length of the header
//	header    JSON {"version", "tensors": [{"name","dtype","shape","offset"}], "meta"}
//	data      the tensors, row-major; offset counts from the first data byte
//	32 bytes  SHA-256 of everything before
//
// dtype is "f16" (IEEE binary16) or "f32". "meta" is not read. A file that is
// truncated, changed by one bit, or of another version of the format is refused.
package weights

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the networks in the binary
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"hubbub/protocol/hint"
)

//go:embed engine.hubw
var embedded []byte

// Default returns the networks that are built into the program, parsed once.
var Default = sync.OnceValues(func() (*File, error) { return Parse(embedded) })

//go:embed decoder-live.hubw
var liveDecoder []byte

//go:embed decoder-recording.hubw
var recordingDecoder []byte

// LiveDecoder and RecordingDecoder return the decoder of the live engine and that of
// the second pass. They belong to the networks of Default.
func LiveDecoder() (*File, error)      { return Parse(liveDecoder) }
func RecordingDecoder() (*File, error) { return Parse(recordingDecoder) }

const (
	magic       = "HUBBUBW1"
	magicFamily = "HUBBUBW"
	sumSize     = sha256.Size
	// maxHeader (bytes) and maxValues bound what a damaged length can allocate.
	maxHeader = 1 << 20
	maxValues = 1 << 24
)

// The errors of Parse and Tensor.
var (
	// ErrFormat: not a weights file, or one of an unknown version of the format.
	ErrFormat = errors.New("unknown weights format")
	// ErrDamaged: truncated, or changed since it was written.
	ErrDamaged = errors.New("damaged weights")
	// ErrContent: intact, but without a tensor that the network needs.
	ErrContent = errors.New("unfit weights")
)

func refuse(kind error, format string, args ...any) error {
	next := "Rebuild the program from a clean checkout, or export the weights again."
	if kind == ErrFormat {
		next = "Use weights that were exported for this version of the program."
	}
	return hint.Errorf(next, "%w: %s", kind, fmt.Sprintf(format, args...))
}

// File is a parsed weights file. It is immutable and may be shared by any number
// of goroutines.
type File struct {
	version string
	tensors map[string]tensor
}

type tensor struct {
	shape  []int
	values []float32
}

type header struct {
	Version json.RawMessage `json:"version"`
	Tensors []struct {
		Name   string `json:"name"`
		Dtype  string `json:"dtype"`
		Shape  []int  `json:"shape"`
		Offset int    `json:"offset"`
	} `json:"tensors"`
}

// Parse reads a whole file. It copies what it keeps; data may be read-only. The
// error is an ErrFormat or an ErrDamaged.
func Parse(data []byte) (*File, error) {
	if len(data) < len(magic) || !bytes.HasPrefix(data, []byte(magic)) {
		if bytes.HasPrefix(data, []byte(magicFamily)) && len(data) >= len(magic) {
			return nil, refuse(ErrFormat, "format %q, this program reads %q", data[:len(magic)], magic)
		}
		return nil, refuse(ErrFormat, "does not begin with %q", magic)
	}
	if len(data) < len(magic)+4+sumSize {
		return nil, refuse(ErrDamaged, "only %d bytes", len(data))
	}
	body := data[:len(data)-sumSize]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], data[len(body):]) {
		return nil, refuse(ErrDamaged, "the checksum over %d bytes does not match", len(body))
	}
	// The checksum is right, so what is wrong from here on was written so.
	n := int(binary.LittleEndian.Uint32(body[len(magic):]))
	if n > maxHeader || n > len(body)-len(magic)-4 {
		return nil, refuse(ErrDamaged, "header of %d bytes in a file of %d", n, len(data))
	}
	var h header
	if err := json.Unmarshal(body[len(magic)+4:][:n], &h); err != nil {
		return nil, refuse(ErrDamaged, "header: %v", err)
	}
	f := &File{version: versionText(h.Version), tensors: make(map[string]tensor, len(h.Tensors))}
	if f.version == "" {
		return nil, refuse(ErrDamaged, "header names no version")
	}
	if err := f.read(h, body[len(magic)+4+n:]); err != nil {
		return nil, err
	}
	return f, nil
}

// versionText is the text of a JSON string or number.
func versionText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(v, &n) == nil {
		return n.String()
	}
	return ""
}

func (f *File) read(h header, data []byte) error {
	total := 0
	for _, t := range h.Tensors {
		if _, twice := f.tensors[t.Name]; twice || t.Name == "" {
			return refuse(ErrDamaged, "tensor %q twice or without a name", t.Name)
		}
		count := 1
		for _, d := range t.Shape {
			if d <= 0 || d > maxValues || count > maxValues/d {
				return refuse(ErrDamaged, "tensor %s has the shape %v", t.Name, t.Shape)
			}
			count *= d
		}
		width := map[string]int{"f16": 2, "f32": 4}[t.Dtype]
		if width == 0 {
			return refuse(ErrDamaged, "tensor %s is of type %q", t.Name, t.Dtype)
		}
		if t.Offset < 0 || t.Offset > len(data) || count*width > len(data)-t.Offset {
			return refuse(ErrDamaged, "tensor %s lies outside the file", t.Name)
		}
		if total += count; total > maxValues {
			return refuse(ErrDamaged, "more than %d values", maxValues)
		}
		values := make([]float32, count)
		decode(values, data[t.Offset:], width)
		for i, v := range values {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return refuse(ErrDamaged, "tensor %s holds %v at %d", t.Name, v, i)
			}
		}
		f.tensors[t.Name] = tensor{slices.Clone(t.Shape), values}
	}
	return nil
}

func decode(dst []float32, src []byte, width int) {
	if width == 2 {
		for i := range dst {
			dst[i] = fromHalf(binary.LittleEndian.Uint16(src[2*i:]))
		}
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
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

// Shape is the shape of a tensor, nil when there is none of that name.
func (f *File) Shape(name string) []int { return slices.Clone(f.tensors[name].shape) }

// Tensor returns the values of a tensor, row-major, which the caller must not
// change. The error, when the file has none of that name and shape, is an
// ErrContent.
func (f *File) Tensor(name string, shape ...int) ([]float32, error) {
	t, ok := f.tensors[name]
	if !ok {
		return nil, refuse(ErrContent, "no tensor %s", name)
	}
	if !slices.Equal(t.shape, shape) {
		return nil, refuse(ErrContent, "tensor %s has the shape %v, the network needs %v", name, t.shape, shape)
	}
	return t.values, nil
}

// Reader reads many tensors and keeps the first error, so that a network can be
// filled without a check after every tensor.
type Reader struct {
	File *File
	Err  error
}

// Tensor is File.Tensor; after an error it returns zeros of that shape.
func (r *Reader) Tensor(name string, shape ...int) []float32 {
	v, err := r.File.Tensor(name, shape...)
	if err == nil {
		return v
	}
	if r.Err == nil {
		r.Err = err
	}
	n := 1
	for _, d := range shape {
		n *= d
	}
	return make([]float32, n)
}
