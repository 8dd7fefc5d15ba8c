// Package evaluation scores a diarization against a reference: the diarization
// error rate as NIST defines it, and the stability of labels, which it does not
// show.
package evaluation

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"hubbub/protocol"
)

type span struct{ start, end float64 }

// recording is one file: the speakers of the reference and the labels of the hypothesis.
type recording struct {
	file     string
	ref, hyp side
	regions  []span
}

// side has names in order, and for each the turns in order of time, merged where they touch.
type side struct {
	names []string
	turns [][]span
}

// recordings sorts turns and regions by file, files in order of name. With a
// UEM the files that it names are scored, and only those; without one every
// file of either side is, from its first turn's start to its last one's end.
func recordings(ref, hyp []protocol.FileTurn, uem []protocol.UEMRegion) []*recording {
	byFile := map[string]*recording{}
	of := func(file string) *recording {
		r := byFile[file]
		if r == nil {
			r = &recording{file: file}
			byFile[file] = r
		}
		return r
	}
	for _, u := range uem {
		r := of(u.File)
		r.regions = append(r.regions, span{u.Start, u.End})
	}
	known := func(file string) bool { return uem == nil || byFile[file] != nil }
	for _, t := range inOrder(ref) {
		if known(t.File) {
			of(t.File).ref.add(t.Turn)
		}
	}
	for _, t := range inOrder(hyp) {
		if known(t.File) {
			of(t.File).hyp.add(t.Turn)
		}
	}
	all := slices.SortedFunc(maps.Values(byFile), func(a, b *recording) int { return cmp.Compare(a.file, b.file) })
	for _, r := range all {
		if uem == nil {
			r.regions = r.extent()
		}
	}
	return all
}

// inOrder sorts turns by speaker, and those of one by time.
func inOrder(turns []protocol.FileTurn) []protocol.FileTurn {
	return slices.SortedFunc(slices.Values(turns), func(a, b protocol.FileTurn) int {
		return cmp.Or(cmp.Compare(a.Speaker, b.Speaker), cmp.Compare(a.Start, b.Start))
	})
}

// add adds the next turn of a file in that order.
func (s *side) add(t protocol.Turn) {
	n := len(s.names)
	if n == 0 || s.names[n-1] != t.Speaker {
		s.names, s.turns = append(s.names, t.Speaker), append(s.turns, []span{{t.Start, t.End}})
		return
	}
	turns := s.turns[n-1]
	if last := &turns[len(turns)-1]; t.Start <= last.end {
		last.end = max(last.end, t.End)
		return
	}
	s.turns[n-1] = append(turns, span{t.Start, t.End})
}

// extent is from the first turn's start to the last one's end, of either side.
func (r *recording) extent() []span {
	all := span{math.Inf(1), math.Inf(-1)}
	for _, s := range []side{r.ref, r.hyp} {
		for _, turns := range s.turns {
			all.start = min(all.start, turns[0].start)
			all.end = max(all.end, turns[len(turns)-1].end)
		}
	}
	if all.end < all.start {
		return nil
	}
	return []span{all}
}

// interval is a part of a recording in which neither the speakers of the reference
// nor the labels of the hypothesis change.
type interval struct {
	start, end float64
	speakers   []int
	labels     []int
}

func (p *interval) seconds() float64 { return p.end - p.start }

// What an edge is a boundary of.
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

// sweep divides a recording at every boundary and calls visit for each scored
// interval in order of time: inside a region, further than collar seconds from
// every reference boundary, and with speech by either side. The interval and its
// slices are reused.
func (r *recording) sweep(collar float64, visit func(*interval)) {
	var edges []edge
	add := func(start, end float64, side uint8, who int) {
		edges = append(edges, edge{start, side, true, int32(who)}, edge{end, side, false, int32(who)})
	}
	for who, turns := range r.ref.turns {
		for _, t := range turns {
			add(t.start, t.end, inReference, who)
			if collar > 0 {
				add(t.start-collar, t.start+collar, inCollar, 0)
				add(t.end-collar, t.end+collar, inCollar, 0)
			}
		}
	}
	for who, turns := range r.hyp.turns {
		for _, t := range turns {
			add(t.start, t.end, inHypothesis, who)
		}
	}
	for _, u := range r.regions {
		add(u.start, u.end, inRegion, 0)
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })

	var p interval
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

// toggle keeps the set sorted, so that the result does not depend on the order of
// edges at the same time.
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
