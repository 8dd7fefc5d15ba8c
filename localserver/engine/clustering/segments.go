package clustering

import (
	"math"
	"slices"
)

// segment is a Segment with its local speaker and its segment cluster.
type segment struct {
	*Segment
	embedding normalised
	local     int // index of the local speaker
	cluster   int // index of the first segment of its cluster
}

// segmentCluster is a set of segments of one window that are taken for one
// person: of one local speaker, of several, or a part of one.
type segmentCluster struct {
	embedding normalised
	duration  float64 // seconds of single-speaker speech
}

const (
	// ActiveThreshold is the probability above which a frame is speech and a local
	// speaker active in it.
	ActiveThreshold = 0.5
	// minOverlap is how many frames (20 ms) two segments must talk at once to be
	// two people; less is the inaccuracy of their boundaries.
	minOverlap = 11
	// durationOffset (seconds) keeps segments of no single-speaker speech in
	// the average linkage, centroidOffset in the embedding of a cluster.
	durationOffset, centroidOffset = 0.1, 0.05
)

// clusterSegments clusters the segments of a window: agglomerative clustering
// with average linkage. Segments that talk at once are never joined.
func (c *Clusterer) clusterSegments(w *Window) {
	c.segments = c.segments[:0]
	for k := range w.Speakers {
		for i := range w.Speakers[k].Segments {
			s := segment{Segment: &w.Speakers[k].Segments[i], local: k, cluster: len(c.segments)}
			s.embedding.Embedding = s.Embedding
			s.embedding.normalise()
			c.segments = append(c.segments, s)
		}
	}
	n := len(c.segments)
	c.cosines = slices.Grow(c.cosines[:0], n*n)[:n*n]
	for i := range c.segments {
		for j := range i {
			s := w.cosine(&c.segments[i], &c.segments[j])
			c.cosines[i*n+j], c.cosines[j*n+i] = s, s
		}
	}
	for {
		a, b, best := 0, 0, c.p.LinkageThreshold
		for g := range n {
			for h := range g {
				if s, ok := c.averageLinkage(g, h); ok && s > best {
					a, b, best = g, h, s
				}
			}
		}
		if a == b {
			break
		}
		for i := range c.segments {
			if c.segments[i].cluster == a {
				c.segments[i].cluster = b
			}
		}
	}
	c.collectClusters()
}

// cosine is that of two segments; those that talk at once are of two
// people.
func (w *Window) cosine(a, b *segment) float64 {
	if a.local != b.local && w.Overlap(a.local, a.Segment, b.local, b.Segment) {
		return math.Inf(-1)
	}
	return a.Embedding.Dot(&b.Embedding)
}

// Overlap reports whether segment a of local speaker i and segment b of another one, j,
// talk at once for minOverlap frames or more.
func (w *Window) Overlap(i int, a *Segment, j int, b *Segment) bool {
	both := 0
	x, y := w.Speakers[i].Activity, w.Speakers[j].Activity
	for f := max(a.From, b.From); f < min(a.To, b.To); f++ {
		if x[f] > ActiveThreshold && y[f] > ActiveThreshold {
			both++
		}
	}
	return both >= minOverlap
}

// averageLinkage is the mean cosine of two clusters, weighted by duration;
// ok is false when one is empty.
func (c *Clusterer) averageLinkage(g, h int) (mean float64, ok bool) {
	n, sum, weight := len(c.segments), 0.0, 0.0
	for i := range c.segments {
		if c.segments[i].cluster != g {
			continue
		}
		for j := range c.segments {
			if c.segments[j].cluster == h {
				wt := (durationOffset + c.segments[i].Duration) * (durationOffset + c.segments[j].Duration)
				sum += wt * c.cosines[i*n+j]
				weight += wt
			}
		}
	}
	return sum / weight, weight > 0
}

// collectClusters computes embedding and duration of each cluster.
func (c *Clusterer) collectClusters() {
	c.clusters = c.clusters[:0]
	for first := range c.segments {
		if c.segments[first].cluster != first {
			continue
		}
		g := segmentCluster{}
		var sum [Dim]float64
		for i := range c.segments {
			s := &c.segments[i]
			if s.cluster != first {
				continue
			}
			g.duration += s.Duration
			for k, x := range s.Embedding {
				sum[k] += (centroidOffset + s.Duration) * float64(x)
			}
		}
		g.embedding.Embedding = Unit(&sum)
		g.embedding.normalise()
		c.clusters = append(c.clusters, g)
	}
}
