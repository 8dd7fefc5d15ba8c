package weights

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hubbub/localserver/engine/weights/weightstest"
	"hubbub/protocol/hint"
)

func sample(t testing.TB) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	a, b := make([]float32, 24), make([]float32, 5)
	for i := range a {
		a[i] = float32(r.NormFloat64())
	}
	for i := range b {
		b[i] = float32(i)
	}
	data, err := weightstest.Encode("test-1", []weightstest.Tensor{{Name: "a.w", Shape: []int{2, 3, 4}, Values: a}, {Name: "a.b", Shape: []int{5}, Values: b}}, map[string]any{"seed": 1})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// seal replaces the checksum, so that a change reaches the checks after it.
func seal(data []byte) []byte {
	body := data[:len(data)-sumSize]
	sum := sha256.Sum256(body)
	return append(slices.Clone(body), sum[:]...)
}

func TestRoundTrip(t *testing.T) {
	f, err := Parse(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	if f.Version() != "test-1" || !slices.Equal(f.Shape("a.w"), []int{2, 3, 4}) || f.Shape("a.c") != nil {
		t.Fatalf("version %q, shapes %v and %v", f.Version(), f.Shape("a.w"), f.Shape("a.c"))
	}
	b, err := f.Tensor("a.b", 5)
	if err != nil || !slices.Equal(b, []float32{0, 1, 2, 3, 4}) {
		t.Fatalf("a.b: %v, %v", b, err)
	}
	for _, c := range []struct {
		name  string
		shape []int
	}{{"a.c", []int{5}}, {"a.b", []int{6}}, {"a.w", []int{24}}} {
		if _, err := f.Tensor(c.name, c.shape...); !errors.Is(err, ErrContent) {
			t.Errorf("%s %v: %v", c.name, c.shape, err)
		}
	}
	r := Reader{File: f}
	if got := r.Tensor("nothing", 2, 2); len(got) != 4 || !errors.Is(r.Err, ErrContent) {
		t.Errorf("reader gave %v, %v", got, r.Err)
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	data := sample(t)
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			if _, err := Parse(data); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) {
				t.Fatalf("byte %d bit %d: %v", i, bit, err)
			}
			data[i] ^= 1 << bit
		}
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	data := sample(t)
	for n := range data {
		if _, err := Parse(data[:n]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(data))
		}
	}
}

func TestUnknownFormatVersionIsNamed(t *testing.T) {
	data := sample(t)
	data[7] = '2'
	_, err := Parse(seal(data))
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "HUBBUBW2") || hint.Of(err) == "" {
		t.Fatalf("%v", err)
	}
}

// TestInvalidHeaders writes invalid headers with a valid checksum.
func TestInvalidHeaders(t *testing.T) {
	build := func(head string, data []byte) []byte {
		out := append([]byte(magic), binary.LittleEndian.AppendUint32(nil, uint32(len(head)))...)
		out = append(append(out, head...), data...)
		return seal(append(out, make([]byte, sumSize)...))
	}
	nan := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	for name, data := range map[string][]byte{
		"no json":       build("{", nil),
		"no version":    build(`{"tensors":[]}`, nil),
		"huge shape":    build(`{"version":"1","tensors":[{"name":"x","dtype":"f32","shape":[1073741824,1073741824],"offset":0}]}`, nil),
		"negative":      build(`{"version":"1","tensors":[{"name":"x","dtype":"f32","shape":[-1],"offset":0}]}`, nil),
		"zero":          build(`{"version":"1","tensors":[{"name":"x","dtype":"f32","shape":[0],"offset":0}]}`, nil),
		"type":          build(`{"version":"1","tensors":[{"name":"x","dtype":"i8","shape":[1],"offset":0}]}`, make([]byte, 8)),
		"outside":       build(`{"version":"1","tensors":[{"name":"x","dtype":"f32","shape":[2],"offset":4}]}`, make([]byte, 8)),
		"offset":        build(`{"version":"1","tensors":[{"name":"x","dtype":"f32","shape":[2],"offset":-4}]}`, make([]byte, 8)),
		"twice":         build(`{"version":"1","tensors":[{"name":"x","dtype":"f32","shape":[1],"offset":0},{"name":"x","dtype":"f32","shape":[1],"offset":0}]}`, make([]byte, 8)),
		"not a number":  build(`{"version":"1","tensors":[{"name":"x","dtype":"f32","shape":[1],"offset":0}]}`, nan),
		"header length": seal(append(append([]byte(magic), 255, 255, 255, 255), make([]byte, 40)...)),
	} {
		if f, err := Parse(data); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, %v", name, f, err)
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

func FuzzParse(f *testing.F) {
	data := sample(f)
	f.Add(data)
	f.Add(bytes.Replace(data, []byte(`"f32"`), []byte(`"f16"`), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Parse(data)
		if len(data) >= sumSize { // with a valid checksum
			if file, err := Parse(seal(data)); err == nil {
				for n := range file.tensors {
					if _, err := file.Tensor(n, file.Shape(n)...); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

func TestDefaultIsCompleteAndSmall(t *testing.T) {
	f, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if f.Version() == "" || len(embedded) > 4<<20 {
		t.Fatalf("version %q, %d bytes", f.Version(), len(embedded))
	}
}

// TestDamagedDefaultIsRefused flips bits all over the embedded weights and truncates them.
func TestDamagedDefaultIsRefused(t *testing.T) {
	data, r := slices.Clone(embedded), rand.New(rand.NewPCG(1, 1))
	for range 100 {
		i, bit := r.IntN(len(data)), byte(1)<<r.IntN(8)
		data[i] ^= bit
		if _, err := Parse(data); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) {
			t.Fatalf("byte %d: %v", i, err)
		}
		data[i] ^= bit
		if _, err := Parse(data[:i]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", i, len(data))
		}
	}
}
