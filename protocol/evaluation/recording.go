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

// recording is one file. For each speaker and each label, numbered in order of
// name, it has the turns in order of time, merged where they touch.
type recording struct {
	file     string
	speakers []string
	labels   []string
	ref, hyp [][]span
	regions  []span
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
	refs, hyps := bySpeaker(ref, known), bySpeaker(hyp, known)
	for file, speakers := range refs {
		r := of(file)
		r.speakers, r.ref = inOrder(speakers)
	}
	for file, labels := range hyps {
		r := of(file)
		r.labels, r.hyp = inOrder(labels)
	}

	all := make([]*recording, 0, len(byFile))
	for _, r := range byFile {
		if uem == nil {
			r.regions = r.extent()
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *recording) int { return cmp.Compare(a.file, b.file) })
	return all
}

func bySpeaker(turns []protocol.FileTurn, known func(string) bool) map[string]map[string][]span {
	files := map[string]map[string][]span{}
	for _, t := range turns {
		if !known(t.File) {
			continue
		}
		if files[t.File] == nil {
			files[t.File] = map[string][]span{}
		}
		files[t.File][t.Speaker] = append(files[t.File][t.Speaker], span{t.Start, t.End})
	}
	return files
}

func inOrder(turns map[string][]span) (names []string, merged [][]span) {
	names = slices.Sorted(maps.Keys(turns))
	for _, name := range names {
		merged = append(merged, merge(turns[name]))
	}
	return names, merged
}

// merge sorts spans and joins those that touch or overlap.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && s.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// extent is from the first turn's start to the last one's end, of either side.
func (r *recording) extent() []span {
	all := span{math.Inf(1), math.Inf(-1)}
	for _, side := range [][][]span{r.ref, r.hyp} {
		for _, turns := range side {
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
