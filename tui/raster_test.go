package tui

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol"
)

// plainRaster is raster without bisection and without shortcuts: each eighth
// of each cell by itself.
func plainRaster(turns []protocol.Turn, first, cells int, cellDur float64) []uint8 {
	masks := make([]uint8, cells)
	sub := cellDur / subcells
	for _, t := range turns {
		lo, hi := edge(t.Start, sub), edge(t.End, sub)
		if hi <= lo {
			lo = int(t.Start / sub)
			hi = lo + 1
		}
		for k := range cells * subcells {
			if at := first*subcells + k; at >= lo && at < hi {
				masks[k/subcells] |= 1 << (k % subcells)
			}
		}
	}
	return masks
}

func drawTurns(t *rapid.T) []protocol.Turn {
	var turns []protocol.Turn
	at := 0.0
	for range rapid.IntRange(0, 40).Draw(t, "turns") {
		at += float64(rapid.IntRange(1, 4000).Draw(t, "gap ms")) / 1000
		start := at
		at += float64(rapid.IntRange(1, 9000).Draw(t, "length ms")) / 1000
		turns = append(turns, protocol.Turn{Speaker: "A", Start: start, End: at})
	}
	return turns
}

func TestRasterMarksWhatTheTurnsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := drawTurns(t)
		cells := rapid.IntRange(1, 60).Draw(t, "cells")
		first := rapid.IntRange(-50, 200).Draw(t, "first")
		cellDur := rapid.Float64Range(0.02, 20).Draw(t, "cellDur")
		got := make([]uint8, cells)
		raster(got, turns, first, cellDur)
		// A turn that only rounding brings into the window may be missed, by
		// an eighth of a cell at either end.
		want := plainRaster(turns, first, cells, cellDur)
		got[0] |= want[0] & 1
		got[cells-1] |= want[cells-1] & 0x80
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("cell %d of %d: %08b, want %08b", i, cells, got[i], want[i])
			}
		}
	})
}

func TestRasterIsTheSameWhereverTheWindowIs(t *testing.T) {
	turns := conversation(1, 60, 3)
	wide := make([]uint8, 200)
	raster(wide, turns, 0, 0.3)
	for first := range 100 {
		part := make([]uint8, 50)
		raster(part, turns, first, 0.3)
		for i := 1; i < len(part)-1; i++ {
			if part[i] != wide[first+i] {
				t.Fatalf("window at %d, cell %d: %08b, else %08b", first, i, part[i], wide[first+i])
			}
		}
	}
}

func TestShortestTurnIsVisible(t *testing.T) {
	masks := make([]uint8, 100)
	raster(masks, []protocol.Turn{{Start: 100.001, End: 100.002}}, 0, 36)
	if masks[2] == 0 {
		t.Error("a turn of a millisecond is not drawn at an hour across")
	}
}

func TestMarkKeepsTheAmountAndTheEdges(t *testing.T) {
	g := glyphsFor(false, false)
	index := map[string]int{"": 0}
	for n := 1; n <= 8; n++ {
		index[g.part[n]] = n
	}
	for m := range 256 {
		mask := uint8(m)
		glyph, swapped := g.mark(mask)
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

func TestMarkWithoutSwappedColours(t *testing.T) {
	for _, g := range []*glyphs{glyphsFor(true, false), glyphsFor(false, true)} {
		for m := range 256 {
			glyph, swapped := g.mark(uint8(m))
			if swapped {
				t.Fatalf("%08b swaps colours", m)
			}
			if (glyph == "") != (m == 0) {
				t.Fatalf("%08b is drawn as %q", m, glyph)
			}
		}
	}
}
