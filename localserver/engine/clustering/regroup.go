package clustering

import "math"

// group is what is taken for one voice of a window after its pieces have been
// compared: pieces of one local, of several, or a part of one.
type group struct {
	embedding Embedding
	lone      float64 // seconds
	coherence float64 // mean cosine of its pieces with the group
	first     int     // the number of its first piece
	above     float64 // how far it exceeds the threshold of the nearest voice
}

// piece is a Piece with where it comes from and where it goes.
type piece struct {
	*Piece
	local  int
	group  int // the number of its group's first piece
	centre int // the middle of its lone speech, in frames of the window
}

// regroup finds the voices of a window from its pieces by agglomerative
// clustering with average linkage. What the segmentation network thinks is one
// voice in the comparison: pieces of one local are likelier the same person,
// pieces of two locals likelier not, and never where both talk at once.
func (c *Clusterer) regroup(w *Window) {
	c.pieces = c.pieces[:0]
	for k := range w.Locals {
		for i := range w.Locals[k].Pieces {
			c.pieces = append(c.pieces, piece{Piece: &w.Locals[k].Pieces[i], local: k, group: len(c.pieces), centre: w.Locals[k].Pieces[i].Centre})
		}
	}
	n := len(c.pieces)
	c.alike = resize(c.alike, n*n)
	for i := range c.pieces {
		for j := range i {
			s := c.likeness(w, &c.pieces[i], &c.pieces[j])
			c.alike[i*n+j], c.alike[j*n+i] = s, s
		}
	}
	for {
		a, b, best := 0, 0, c.p.Join
		for g := range n {
			for h := range g {
				if s, ok := c.linkage(g, h); ok && s > best {
					a, b, best = g, h, s
				}
			}
		}
		if a == b {
			break
		}
		for i := range c.pieces {
			if c.pieces[i].group == a {
				c.pieces[i].group = b
			}
		}
	}
	c.collect()
}

// likeness compares two pieces: their cosine, corrected for how little short
// pieces say, and for what the segmentation network thinks.
func (c *Clusterer) likeness(w *Window, a, b *piece) float64 {
	cos := a.Embedding.Dot(&b.Embedding)
	short := min(a.Lone, b.Lone)
	cos += c.p.JoinShort * max(0, 1-short)
	if a.local == b.local {
		if w.goesOn(a.local, min(a.centre, b.centre), max(a.centre, b.centre)) {
			cos += c.p.JoinLink
		}
		return cos + c.p.JoinSame
	}
	if c.together(w, a, b) {
		return math.Inf(-1)
	}
	return cos - c.p.JoinOther
}

// together tells whether two pieces of different locals talk at once for more
// than a moment.
func (c *Clusterer) together(w *Window, a, b *piece) bool {
	both := 0
	x, y := w.Locals[a.local].Active, w.Locals[b.local].Active
	for i := max(a.From, b.From); i < min(a.To, b.To); i++ {
		if x[i] > 0.5 && y[i] > 0.5 {
			both++
		}
	}
	return both > 10
}

// linkage is the mean likeness of two groups; ok is false when one is empty.
func (c *Clusterer) linkage(g, h int) (mean float64, ok bool) {
	n, sum, weight := len(c.pieces), 0.0, 0.0
	for i := range c.pieces {
		if c.pieces[i].group != g {
			continue
		}
		for j := range c.pieces {
			if c.pieces[j].group == h {
				wt := (0.1 + c.pieces[i].Lone) * (0.1 + c.pieces[j].Lone)
				sum += wt * c.alike[i*n+j]
				weight += wt
			}
		}
	}
	return sum / weight, weight > 0
}

// collect makes groups of the pieces that belong together.
func (c *Clusterer) collect() {
	c.groups = c.groups[:0]
	for first := range c.pieces {
		if c.pieces[first].group != first {
			continue
		}
		g := group{first: first}
		var sum [Dim]float64
		for i := range c.pieces {
			p := &c.pieces[i]
			if p.group != first {
				continue
			}
			g.lone += p.Lone
			for k, x := range p.Embedding {
				sum[k] += (0.05 + p.Lone) * float64(x)
			}
		}
		var norm float64
		for _, x := range sum {
			norm += x * x
		}
		norm = max(math.Sqrt(norm), 1e-9)
		for k, x := range sum {
			g.embedding[k] = float32(x / norm)
		}
		for i := range c.pieces {
			if p := &c.pieces[i]; p.group == first {
				g.coherence += p.Lone * p.Embedding.Dot(&g.embedding) / max(g.lone, 1e-9)
			}
		}
		c.groups = append(c.groups, g)
	}
}

// resize returns s with length n, its content undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
