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
