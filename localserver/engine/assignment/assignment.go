// Package assignment pairs two sets so that the sum of the pairs' weights is
// greatest: true speakers with labels when a diarization is scored, voices of
// one window with known speakers when it is made.
package assignment

import "math"

// Max returns for each row of weights its column in the best one-to-one
// assignment, or -1 for a row that is left over because there are more rows
// than columns. All rows have the same length; every row gets a column where
// there are enough, also one of no weight. Weights are finite. Ties are broken
// the same way every time.
//
// The method is that of Kuhn and Munkres with potentials and shortest
// augmenting paths (Jonker and Volgenant, "A shortest augmenting path
// algorithm for dense and sparse linear assignment problems", 1987):
// O(n² m) for n rows of m.
func Max(weights [][]float64) []int {
	rows := len(weights)
	if rows == 0 {
		return nil
	}
	columns := len(weights[0])
	if rows > columns {
		return transposed(weights, columns)
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
				cost := -weights[i-1][j-1] - rowPotential[i] - columnPotential[j]
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

	columnOf := make([]int, rows)
	for j := 1; j <= columns; j++ {
		if rowOf[j] != 0 {
			columnOf[rowOf[j]-1] = j - 1
		}
	}
	return columnOf
}

func transposed(weights [][]float64, columns int) []int {
	columnOf := make([]int, len(weights))
	for i := range columnOf {
		columnOf[i] = -1
	}
	if columns == 0 {
		return columnOf
	}
	turned := make([][]float64, columns)
	for j := range turned {
		turned[j] = make([]float64, len(weights))
		for i, row := range weights {
			turned[j][i] = row[j]
		}
	}
	for j, i := range Max(turned) {
		columnOf[i] = j
	}
	return columnOf
}
