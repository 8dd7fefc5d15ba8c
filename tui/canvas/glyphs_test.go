package canvas

import (
	"math/bits"
	"testing"
)

func TestPartialKeepsTheAmountAndTheEdges(t *testing.T) {
	g := NewGlyphs(false)
	index := map[string]int{"": 0}
	for n := 1; n <= 8; n++ {
		index[g.Block[n]] = n
	}
	for m := range 256 {
		mask := uint8(m)
		glyph, swapped := g.Partial(mask)
		n := index[glyph]
		if swapped {
			n = 8 - n
		}
		if n != bits.OnesCount8(mask) {
			t.Errorf("%08b is drawn with %d eighths", mask, n)
		}
		// One edge is drawn exactly.
		for k := 1; k < 8; k++ {
			if mask == 1<<k-1 && swapped {
				t.Errorf("%08b is filled from the left and drawn from the right", mask)
			}
			if mask == ^uint8(1<<k-1) && !swapped {
				t.Errorf("%08b is filled from the right and drawn from the left", mask)
			}
		}
	}
	for _, c := range []struct {
		name string
		mask uint8
		left bool
	}{
		{"a short turn near the left", 0b00000110, true},
		{"a short turn near the right", 0b01100000, false},
		{"a gap near the right leaves the left filled", 0b11011111, true},
		{"a gap near the left leaves the right filled", 0b11111011, false},
	} {
		if got := fromLeft(c.mask); got != c.left {
			t.Errorf("%s: from the left is %v", c.name, got)
		}
	}
}

func TestPartialWithoutSwappedColours(t *testing.T) {
	for m := range 256 {
		glyph, swapped := NewGlyphs(true).Partial(uint8(m))
		if swapped {
			t.Fatalf("%08b swaps colours", m)
		}
		if (glyph == "") != (m == 0) {
			t.Fatalf("%08b is drawn as %q", m, glyph)
		}
	}
}
