package evaluation

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestAssignIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, 6).Draw(t, "rows")
		columns := rapid.IntRange(0, 6).Draw(t, "columns")
		weights := make([][]float64, rows)
		for i := range weights {
			weights[i] = rapid.SliceOfN(rapid.Float64Range(-10, 10), columns, columns).Draw(t, "row")
		}
		got := assign(weights)
		if len(got) != rows {
			t.Fatalf("%d rows assigned, want %d", len(got), rows)
		}
		used := make([]bool, columns)
		pairs, sum := 0, 0.0
		for i, j := range got {
			if j < 0 {
				continue
			}
			if used[j] {
				t.Fatalf("column %d given twice: %v", j, got)
			}
			used[j] = true
			pairs++
			sum += weights[i][j]
		}
		if want := min(rows, columns); pairs != want {
			t.Fatalf("%d pairs, want %d", pairs, want)
		}
		if want := exhaustive(weights, columns, 0, 0, min(rows, columns)); math.Abs(sum-want) > 1e-9 {
			t.Fatalf("sum %v, best is %v", sum, want)
		}
	})
}

// exhaustive tries every assignment of the rows from row on, without the columns in
// used, of that many pairs.
func exhaustive(weights [][]float64, columns, row int, used uint, pairs int) float64 {
	if pairs == 0 {
		return 0
	}
	best := math.Inf(-1)
	if len(weights)-row > pairs {
		best = exhaustive(weights, columns, row+1, used, pairs)
	}
	for j := range columns {
		if used>>j&1 == 0 {
			best = max(best, weights[row][j]+exhaustive(weights, columns, row+1, used|1<<j, pairs-1))
		}
	}
	return best
}
