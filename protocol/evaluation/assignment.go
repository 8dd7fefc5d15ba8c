package evaluation

import (
	"math"
	"slices"
)

// assign returns for each row of weights its column in the one-to-one assignment
// with the largest sum, or -1 for a row that remains because there are more rows
// than columns. All rows have the same length; every row gets a column where there
// are enough, also one of weight 0. Weights are finite. The result is
// deterministic.
//
// It is the Hungarian method (Kuhn, Munkres) with potentials and shortest
// augmenting paths (Jonker and Volgenant, "A shortest augmenting path algorithm for
// dense and sparse linear assignment problems", 1987): O(n² m) for n rows of m.
func assign(weights [][]float64) []int {
	rows := len(weights)
	if rows == 0 {
		return nil
	}
	given := len(weights[0])
	columns := max(rows, given) // those beyond have weight 0 and stand for none
	weight := func(i, j int) float64 {
		if j < given {
			return weights[i][j]
		}
		return 0
	}

	// Numbered from 1, so that 0 can stand for none.
	rowPotential := make([]float64, rows+1)
	columnPotential := make([]float64, columns+1)
	rowOf := make([]int, columns+1)
	before := make([]int, columns+1)
	least := make([]float64, columns+1)
	done := make([]bool, columns+1)
	for row := 1; row <= rows; row++ {
		for j := range least {
			least[j], done[j] = math.Inf(1), false
		}
		rowOf[0] = row
		column := 0
		for rowOf[column] != 0 {
			done[column] = true
			i := rowOf[column]
			step, next := math.Inf(1), 0
			for j := 1; j <= columns; j++ {
				if done[j] {
					continue
				}
				cost := -weight(i-1, j-1) - rowPotential[i] - columnPotential[j]
				if cost < least[j] {
					least[j], before[j] = cost, column
				}
				if least[j] < step {
					step, next = least[j], j
				}
			}
			for j := 0; j <= columns; j++ {
				if done[j] {
					rowPotential[rowOf[j]] += step
					columnPotential[j] -= step
				} else {
					least[j] -= step
				}
			}
			column = next
		}
		for column != 0 {
			rowOf[column] = rowOf[before[column]]
			column = before[column]
		}
	}

	columnOf := slices.Repeat([]int{-1}, rows)
	for j := 1; j <= given; j++ {
		if rowOf[j] != 0 {
			columnOf[rowOf[j]-1] = j - 1
		}
	}
	return columnOf
}
