package weights

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// sample is a file of two tensors: a.w, and a.b with the values 0 to 4.
func sample() []byte {
	head := `{"version":"test-1","tensors":[{"name":"a.w","dtype":"f32","shape":[2,3,4],"offset":0},{"name":"a.b","dtype":"f32","shape":[5],"offset":96}],"meta":{"seed":1}}`
	file := binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(head)))
	file = append(file, head...)
	for i := range 24 + 5 {
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(float32(i-24)))
	}
	sum := sha256.Sum256(file)
	return append(file, sum[:]...)
}

// panics reports whether f panics.
func panics(f func()) (does bool) {
	defer func() { does = recover() != nil }()
	f()
	return false
}

func TestRoundTrip(t *testing.T) {
	f := MustRead(sample())
	if f.Version() != "test-1" || len(f.Tensor("a.w", 2, 3, 4)) != 24 {
		t.Fatalf("version %q, %d values of a.w", f.Version(), len(f.Tensor("a.w", 2, 3, 4)))
	}
	if b := f.Tensor("a.b", 5); !slices.Equal(b, []float32{0, 1, 2, 3, 4}) {
		t.Fatalf("a.b: %v", b)
	}
	for _, c := range []struct {
		name  string
		shape []int
	}{{"a.c", []int{5}}, {"a.c", nil}, {"a.b", []int{6}}, {"a.w", []int{24}}} {
		if !panics(func() { f.Tensor(c.name, c.shape...) }) {
			t.Errorf("there is a tensor %s of the shape %v", c.name, c.shape)
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	data := sample()
	for i := range data {
		if !panics(func() { MustRead(data[:i]) }) {
			t.Fatalf("%d of %d bytes were read", i, len(data))
		}
		for bit := range 8 {
			data[i] ^= 1 << bit
			if !panics(func() { MustRead(data) }) {
				t.Fatalf("byte %d bit %d was changed", i, bit)
			}
			data[i] ^= 1 << bit
		}
	}
}

func TestFloat16(t *testing.T) {
	for bits, want := range map[uint16]float32{
		0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 0x1p-24, 0x3ff: 1023 * 0x1p-24, 0x400: 0x1p-14, 0x3555: 0.333251953125,
	} {
		if got := fromHalf(bits); got != want {
			t.Errorf("%#04x: %v, want %v", bits, got, want)
		}
	}
	if !math.Signbit(float64(fromHalf(0x8000))) || !math.IsInf(float64(fromHalf(0x7c00)), 1) || !math.IsNaN(float64(fromHalf(0x7e00))) {
		t.Error("signed zero, infinity or NaN lost")
	}
}

// The networks in the program can be read, have numbers only, and are small.
func TestEmbedded(t *testing.T) {
	if len(embedded) > 4<<20 {
		t.Errorf("%d bytes", len(embedded))
	}
	for _, f := range []*File{Default(), LiveDecoder(), RecordingDecoder()} {
		if f.Version() == "" || len(f.tensors) == 0 {
			t.Errorf("version %q, %d tensors", f.Version(), len(f.tensors))
		}
		for name, tensor := range f.tensors {
			for _, v := range tensor.values {
				if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("tensor %s has the value %v", name, v)
				}
			}
		}
	}
}
