package offline

import (
	"context"
	"math"
	"slices"
	"testing"

	"hubbub/localserver/engine/clustering"
	"hubbub/protocol/testkit"
)

// atAngle are clusters of 1 s of one voice: all with the cosine that this angle
// (radians) has to the voice at angle 0.
func atAngle(seconds int, angle float64) (list []cluster) {
	var e clustering.Embedding
	for i := 0; i < clustering.Dim; i += 2 {
		e[i], e[i+1] = float32(math.Cos(angle)/8), float32(math.Sin(angle)/8)
	}
	for range seconds {
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
		r := testkit.Must(New(c.o))(t)
		var items []cluster
		for _, list := range c.items {
			items = append(items, list...)
		}
		var got []float64
		for _, s := range r.cut(items) {
			got = append(got, math.Round(s.duration))
		}
		testkit.EqualSlices(t, got, c.want, c.name)
	}
}

// TestAssign: a speaker becomes the mean of the segment clusters that are nearest to it, with
// the speech that it had; those that are too short are only assigned.
func TestAssign(t *testing.T) {
	r := testkit.Must(New(Options{}))(t)
	say := func(angle, duration float64) window {
		return window{clusters: []segmentCluster{{embedding: atAngle(1, angle)[0].quantised(), duration: duration, speaker: noSpeaker}}}
	}
	r.windows = []window{say(0, 1), say(0.2, 1), say(0.4, r.params.MinCluster/2), say(1.6, 2)}
	speakers := append(atAngle(1, 0.6), atAngle(1, 2)...)
	testkit.NoError(t, r.assign(context.Background(), speakers))
	for k, angle := range []float64{0.1, 1.6} {
		want := atAngle(1, angle)[0]
		if speakers[k].cosine(&want) < 0.9999 || speakers[k].duration != 1 {
			t.Errorf("speaker %d: %v of %v s, want an angle of %v", k, speakers[k].sum[:2], speakers[k].duration, angle)
		}
	}
	for i, want := range []int{0, 0, 0, 1} {
		testkit.Equal(t, r.windows[i].clusters[0].speaker, want, "segment cluster", i, "is of speaker")
	}
}

// TestSimilarSpeakersAreMerged: segment clusters that are too short, or in the middle of no
// window, create no speaker. Here they move the centroids of two speakers towards each other.
func TestSimilarSpeakersAreMerged(t *testing.T) {
	for _, c := range []struct{ min, want int }{{1, 1}, {2, 2}, {3, 2}} {
		r := testkit.Must(New(Options{MinSpeakers: c.min}))(t)
		for _, g := range []struct{ angle, duration, fresh float64 }{
			{0, 10, 10}, {0.8, 10, 10}, {0.39, 100, 0}, {0.41, 100, 0}, {2, r.params.MinCluster / 2, 5},
		} {
			r.windows = append(r.windows, window{clusters: []segmentCluster{
				{embedding: atAngle(1, g.angle)[0].quantised(), duration: g.duration, fresh: g.fresh, speaker: noSpeaker}}})
		}
		testkit.Equal(t, len(r.cut(slices.Collect(r.items()))), 2, "speakers before the assignment")
		if speakers, err := r.findSpeakers(context.Background()); err != nil || len(speakers) != c.want {
			t.Errorf("at least %d: %d speakers, %v", c.min, len(speakers), err)
		}
	}
}
