package tui

import (
	"math"
	"sort"

	"hubbub/protocol"
)

// subcells is how many steps an edge has within one cell.
const subcells = 8

// raster marks in masks what part of each cell speech covers: bit k of
// masks[i] is the k-th eighth of cell i. The cells lie on the stream clock: cell
// 0 begins at first*cellDur seconds, wherever the window is, so that a turn
// keeps its shape while the window moves on. Turns have to be in order and
// without overlap; the ones in the window are found by bisection, because
// there may be hours of them beside it.
func raster(masks []uint8, turns []protocol.Turn, first int, cellDur float64) {
	from, to := float64(first)*cellDur, float64(first+len(masks))*cellDur
	i := sort.Search(len(turns), func(i int) bool { return turns[i].End > from })
	for ; i < len(turns) && turns[i].Start < to; i++ {
		rasterTurn(masks, turns[i].Start, turns[i].End, first, cellDur)
	}
}

// rasterTurn marks one stretch of speech. However short it is, it gets an
// eighth of a cell: nothing that was said is invisible.
func rasterTurn(masks []uint8, start, end float64, first int, cellDur float64) {
	sub := cellDur / subcells
	lo, hi := edge(start, sub), edge(end, sub)
	if hi <= lo {
		lo = int(math.Floor(start / sub))
		hi = lo + 1
	}
	base := first * subcells
	lo, hi = max(lo-base, 0), min(hi-base, len(masks)*subcells)
	for k := lo; k < hi; {
		if k%subcells == 0 && hi-k >= subcells {
			masks[k/subcells] = 0xff
			k += subcells
			continue
		}
		masks[k/subcells] |= 1 << (k % subcells)
		k++
	}
}

// edge is the step nearest to a position in seconds.
func edge(seconds, sub float64) int { return int(math.Round(seconds / sub)) }
