package evaluation

import "slices"

// piece is a stretch of a recording in which nothing changes: who talks by the
// reference, who by the hypothesis.
type piece struct {
	start, end float64
	speakers   []int
	labels     []int
}

func (p *piece) seconds() float64 { return p.end - p.start }

// sides of an edge.
const (
	inReference = iota
	inHypothesis
	inRegion
	inCollar
)

type edge struct {
	at    float64
	side  uint8
	begin bool
	who   int32
}

// sweep cuts a recording at every boundary and calls visit for each scored
// piece in order of time: inside a region, further than collar seconds from
// every reference boundary, and with somebody talking by either side. The
// piece and its slices are reused.
func (r *recording) sweep(collar float64, visit func(*piece)) {
	n := len(r.regions)
	for _, turns := range r.ref {
		n += len(turns) * 3
	}
	for _, turns := range r.hyp {
		n += len(turns)
	}
	edges := make([]edge, 0, 2*n)
	add := func(start, end float64, side uint8, who int) {
		edges = append(edges, edge{start, side, true, int32(who)}, edge{end, side, false, int32(who)})
	}
	for who, turns := range r.ref {
		for _, t := range turns {
			add(t.start, t.end, inReference, who)
			if collar > 0 {
				add(t.start-collar, t.start+collar, inCollar, 0)
				add(t.end-collar, t.end+collar, inCollar, 0)
			}
		}
	}
	for who, turns := range r.hyp {
		for _, t := range turns {
			add(t.start, t.end, inHypothesis, who)
		}
	}
	for _, u := range r.regions {
		add(u.start, u.end, inRegion, 0)
	}
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})

	var p piece
	var regions, collars int
	last := 0.0
	for _, e := range edges {
		if e.at > last && regions > 0 && collars == 0 && len(p.speakers)+len(p.labels) > 0 {
			p.start, p.end = last, e.at
			visit(&p)
		}
		last = e.at
		switch e.side {
		case inReference:
			p.speakers = toggle(p.speakers, int(e.who), e.begin)
		case inHypothesis:
			p.labels = toggle(p.labels, int(e.who), e.begin)
		case inRegion:
			regions += step(e.begin)
		case inCollar:
			collars += step(e.begin)
		}
	}
}

// toggle keeps the set sorted, so that nothing depends on the order of edges
// at the same time.
func toggle(set []int, who int, begin bool) []int {
	at, found := slices.BinarySearch(set, who)
	switch {
	case begin && !found:
		return slices.Insert(set, at, who)
	case !begin && found:
		return slices.Delete(set, at, at+1)
	}
	return set
}

func step(begin bool) int {
	if begin {
		return 1
	}
	return -1
}
