package offline

import (
	"cmp"
	"slices"
)

const (
	// minContinuations is how many turns of a speaker have to continue the other's speech.
	minContinuations = 3
	// maxContinuationGap is the largest distance (seconds) of such a turn from the other's turns.
	maxContinuationGap = 0.12
	// continuationShare is the share of a speaker's speech in such turns from which the
	// continuation is 1.
	continuationShare = 0.1
)

// continuation is a measure, 0 to 1, of how much the speech of the one of two speakers with less
// of it looks like a part of the other's: the share of it in turns that begin where
// a turn of the other ends and end where one begins. People who take turns leave
// gaps or overlap; one person with two labels changes between them inside sentences.
func continuation(turns []Turn, speakers int) func(a, b int) float64 {
	of := make([][]Turn, speakers) // in order of time, without overlap
	seconds := make([]float64, speakers)
	for _, t := range turns {
		of[t.Speaker] = append(of[t.Speaker], t)
		seconds[t.Speaker] += t.End - t.Start
	}
	return func(a, b int) float64 {
		if seconds[a] > seconds[b] {
			a, b = b, a
		}
		count, inside := 0, 0.0
		for _, t := range of[a] {
			if near(of[b], t.Start, func(t Turn) float64 { return t.End }) && near(of[b], t.End, func(t Turn) float64 { return t.Start }) {
				count++
				inside += t.End - t.Start
			}
		}
		if count < minContinuations {
			return 0
		}
		return min(1, inside/(continuationShare*seconds[a]))
	}
}

// near reports whether a turn begins or ends (edge) within maxContinuationGap of a time.
func near(turns []Turn, at float64, edge func(Turn) float64) bool {
	i, _ := slices.BinarySearchFunc(turns, at-maxContinuationGap, func(t Turn, at float64) int { return cmp.Compare(edge(t), at) })
	return i < len(turns) && edge(turns[i]) <= at+maxContinuationGap
}
