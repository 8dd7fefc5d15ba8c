package weights

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDefaultIsWholeAndSmall(t *testing.T) {
	f, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if f.Version() == "" || len(embedded) > 4<<20 {
		t.Fatalf("version %q, %d bytes", f.Version(), len(embedded))
	}
}

// TestDamagedDefaultIsRefused flips bits all over the real weights and cuts them short.
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
