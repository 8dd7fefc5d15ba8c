package offline

import (
	"math"
	"testing"

	"hubbub/localserver/engine/clustering"
)

// TestSegmentClusters clusters segments of a window whose middle is its frames 100 to 150.
func TestSegmentClusters(t *testing.T) {
	type said struct {
		local, from, to int
		cosine, seconds float64 // cosine with the voice of the first segment
	}
	type want struct{ cosine, duration, fresh float64 }
	for _, c := range []struct {
		name string
		said []said
		want []want
	}{
		{"two voices", []said{{0, 0, 100, 1, 1}, {1, 100, 200, 0.5, 1}}, []want{{1, 1.05, 0}, {0.5, 1.05, 0.5}}},
		{"one voice", []said{{0, 0, 100, 1, 1}, {1, 100, 200, 0.6, 1}}, []want{{0.894, 2.1, 0.5}}},
		{"one voice at once", []said{{0, 0, 100, 1, 1}, {1, 60, 160, 0.6, 1}}, []want{{1, 1.05, 0}, {0.6, 1.05, 0.7}}},
		{"for less than minOverlap", []said{{0, 0, 100, 1, 1}, {1, 90, 190, 0.6, 1}}, []want{{0.894, 2.1, 0.7}}},
		{"one local speaker", []said{{0, 0, 100, 1, 1}, {0, 100, 200, 0.5, 1}}, []want{{0.866, 2.1, 0.5}}},
		{"short speech", []said{{0, 0, 100, 1, 0.3}, {1, 100, 200, 0.5, 0.3}}, []want{{0.866, 0.7, 0.14}}},
		{"no single-speaker speech", []said{{0, 0, 250, 1, 0}}, []want{{1, 0.05, 0}}},
	} {
		w := &clustering.Window{First: 1000, SpeechProbability: make([]float32, windowFrames)}
		for _, x := range c.said {
			if x.local == len(w.Speakers) {
				w.Speakers = append(w.Speakers, clustering.LocalSpeaker{Activity: make([]float32, windowFrames)})
			}
			l := &w.Speakers[x.local]
			l.Segments = append(l.Segments, clustering.Segment{From: x.from, To: x.to, Centre: (x.from + x.to) / 2, Duration: x.seconds,
				Embedding: atAngle(1, math.Acos(x.cosine))[0].centroid()})
			for i := x.from; i < x.to; i++ {
				l.Activity[i] = 1
			}
		}
		p, first := Default(), atAngle(1, 0)[0].centroid()
		k := p.keep(w, 1100, 1150)
		if len(k.clusters) != len(c.want) {
			t.Errorf("%s: %d clusters, want %d", c.name, len(k.clusters), len(c.want))
			continue
		}
		for i, g := range k.clusters {
			e := g.embedding.embedding()
			if cosine := e.Dot(&first); math.Abs(cosine-c.want[i].cosine) > 0.01 || math.Abs(g.duration-c.want[i].duration) > 1e-6 || math.Abs(g.fresh-c.want[i].fresh) > 1e-6 {
				t.Errorf("%s: cluster %d has the cosine %.3f, %.2f s, of which %.2f s are fresh; want %+v", c.name, i, cosine, g.duration, g.fresh, c.want[i])
			}
		}
	}
}
