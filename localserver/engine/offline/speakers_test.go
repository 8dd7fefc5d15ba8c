package offline

import (
	"math"
	"slices"
	"testing"

	"hubbub/localserver/engine/clustering"
)

// atAngle are clusters of 1 s of one voice: all with the cosine that this angle
// (radians) has to the voice at angle 0.
func atAngle(seconds int, angle float64) (list []cluster) {
	for range seconds {
		e := clustering.Embedding{float32(math.Cos(angle)), float32(math.Sin(angle))}
		list = append(list, clusterOf(&e, 1))
	}
	return list
}

// TestGivenCount cuts the clustering with and without the number of speakers.
func TestGivenCount(t *testing.T) {
	similar, other := math.Acos(0.83), math.Acos(0.4)
	for _, c := range []struct {
		name  string
		o     Options
		items [][]cluster
		want  []float64 // seconds of the speakers
	}{
		{"one voice is not divided among four speakers", Options{Speakers: 4}, [][]cluster{atAngle(30, 0)}, []float64{30}},
		{"two similar voices are one speaker", Options{}, [][]cluster{atAngle(30, 0), atAngle(20, similar)}, []float64{50}},
		{"or two if there are two", Options{Speakers: 2}, [][]cluster{atAngle(30, 0), atAngle(20, similar)}, []float64{30, 20}},
		{"or if there are at least two", Options{MinSpeakers: 2}, [][]cluster{atAngle(30, 0), atAngle(20, similar)}, []float64{30, 20}},
		{"three voices are three speakers", Options{}, [][]cluster{atAngle(30, 0), atAngle(20, other), atAngle(3, -math.Pi/2)}, []float64{30, 20, 3}},
		{"of which the one with least speech goes, not the difference of the others", Options{Speakers: 2},
			[][]cluster{atAngle(30, 0), atAngle(20, other), atAngle(3, -math.Pi/2)}, []float64{30, 20}},
	} {
		r, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		var items []cluster
		for _, list := range c.items {
			items = append(items, list...)
		}
		var got []float64
		for _, s := range r.cut(items) {
			got = append(got, math.Round(s.duration))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
