package offline

import (
	"math"
	"slices"

	"hubbub/localserver/engine/clustering"
)

// cluster is a set of items that are taken for one speaker.
type cluster struct {
	sum      [clustering.Dim]float32 // of embeddings, weighted by duration
	norm     float64                 // length of sum
	duration float64                 // seconds
}

func (c *cluster) add(o *cluster) {
	for i, x := range o.sum {
		c.sum[i] += x
	}
	c.duration += o.duration
	c.measure()
}

func (c *cluster) measure() {
	n := 0.0
	for _, x := range c.sum {
		n += float64(x) * float64(x)
	}
	c.norm = max(math.Sqrt(n), 1e-12)
}

// cosine is that of the centroids of two clusters.
func (c *cluster) cosine(o *cluster) float64 {
	return (*clustering.Embedding)(&c.sum).Dot((*clustering.Embedding)(&o.sum)) / (c.norm * o.norm)
}

// centroid is the embedding of the cluster.
func (c *cluster) centroid() clustering.Embedding { return clustering.Unit(&c.sum) }

func clusterOf(e *clustering.Embedding, duration float64) cluster {
	c := cluster{duration: duration}
	for i, x := range e {
		c.sum[i] = float32(duration) * x
	}
	c.measure()
	return c
}

func (c *cluster) quantised() quantisedEmbedding {
	e := c.centroid()
	return quantiseEmbedding(&e)
}

func (q *quantisedEmbedding) cluster(duration float64) cluster {
	e := q.embedding()
	return clusterOf(&e, duration)
}

// merge is one step of agglomerate: cluster from became part of cluster into.
type merge struct {
	into, from int
	score      float64
}

// agglomerate joins two clusters at a time, those with the highest score, until n
// are left, and returns what it joined and what is left. It changes clusters. It is
// agglomerative clustering with a score that the caller defines, O(m²) scores for m
// clusters.
func agglomerate(clusters []cluster, n int, score func(a, b *cluster) float64) (merges []merge, left []cluster) {
	m := len(clusters)
	scores := make([]float32, m*(m-1)/2) // a row for each i, of all j < i
	row := func(i int) []float32 { return scores[i*(i-1)/2:][:i] }
	nearest := make([]int, m) // of i, among j < i
	live := make([]int, m)
	find := func(i int) {
		nearest[i] = live[0]
		for _, j := range live {
			if j >= i {
				break
			}
			if row(i)[j] > row(i)[nearest[i]] {
				nearest[i] = j
			}
		}
	}
	for i := range m {
		live[i] = i
	}
	for i := range m {
		for j := range i {
			row(i)[j] = float32(score(&clusters[i], &clusters[j]))
		}
		find(i)
	}
	for len(live) > max(n, 1) {
		from := live[1]
		for _, i := range live[2:] {
			if row(i)[nearest[i]] > row(from)[nearest[from]] {
				from = i
			}
		}
		into := nearest[from]
		merges = append(merges, merge{into, from, float64(row(from)[into])})
		clusters[into].add(&clusters[from])
		live = slices.DeleteFunc(live, func(i int) bool { return i == from })
		for _, i := range live {
			switch {
			case i < into:
				row(into)[i] = float32(score(&clusters[into], &clusters[i]))
			case i > into:
				row(i)[into] = float32(score(&clusters[i], &clusters[into]))
			}
		}
		for _, i := range live[1:] {
			switch {
			case i == into || nearest[i] == into || nearest[i] == from:
				find(i)
			case i > into && row(i)[into] > row(i)[nearest[i]]:
				nearest[i] = into
			}
		}
	}
	for _, i := range live {
		left = append(left, clusters[i])
	}
	return merges, left
}

// apply makes merges of agglomerate and returns what is left. It changes clusters.
func apply(clusters []cluster, merges []merge) (left []cluster) {
	merged := make([]bool, len(clusters))
	for _, m := range merges {
		clusters[m.into].add(&clusters[m.from])
		merged[m.from] = true
	}
	for i := range clusters {
		if !merged[i] {
			left = append(left, clusters[i])
		}
	}
	return left
}
