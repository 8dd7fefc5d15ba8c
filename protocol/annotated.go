package protocol

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Apply is a timeline as its annotations want it: a lane for each person,
// under the person's name, in order of first speech. Turns of merged labels
// that overlap are one turn; while one of the labels has an open
// turn, finished turns that reach into it are part of it. The snapshot is not
// changed; what has no annotations is shared with it.
func (a Annotations) Apply(s Snapshot) Snapshot {
	if len(a.names) == 0 && len(a.merges) == 0 {
		return s
	}
	roots := a.Roots(s)
	out := make([]Lane, 0, len(roots))
	taken := make(map[string]bool, len(roots))
	for _, root := range roots {
		var parts []Lane
		for _, l := range s.Lanes {
			if a.Root(l.Speaker) == root {
				parts = append(parts, l)
			}
		}
		name := unique(a.Name(root), taken)
		taken[name] = true
		out = append(out, unite(name, parts))
	}
	s.Lanes = out
	return s
}

// Roots are the labels behind the lanes of Apply(s), in the same order.
func (a Annotations) Roots(s Snapshot) []string {
	roots := make([]string, 0, len(s.Lanes))
	for _, l := range s.Lanes {
		if root := a.Root(l.Speaker); !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots
}

// Turns are finished turns, in any order, as the annotations want them: named
// and merged as Apply does it, in order of their starts.
func (a Annotations) Turns(turns []Turn) []Turn {
	turns = slices.Clone(turns)
	slices.SortStableFunc(turns, func(a, b Turn) int { return cmp.Compare(a.Start, b.Start) })
	var s Snapshot
	index := map[string]int{}
	for _, t := range turns {
		i, known := index[t.Speaker]
		if !known {
			i = len(s.Lanes)
			index[t.Speaker] = i
			s.Lanes = append(s.Lanes, Lane{Speaker: t.Speaker})
		}
		s.Lanes[i].Turns = append(s.Lanes[i].Turns, t)
	}
	return a.Apply(s).Turns()
}

// unique keeps two people apart whose names are the same although Rename
// refuses that: a service may send a label that is somebody's name.
func unique(name string, taken map[string]bool) string {
	for i, plain := 2, name; taken[name]; i++ {
		name = fmt.Sprintf("%s (%d)", plain, i)
	}
	return name
}

// unite makes one lane of the lanes of one person.
func unite(name string, parts []Lane) Lane {
	if len(parts) == 1 && parts[0].Speaker == name {
		return parts[0]
	}
	out := Lane{Speaker: name, OpenSince: math.Inf(1)}
	n := 0
	for _, p := range parts {
		n += len(p.Turns)
	}
	all := make([]Turn, 0, n)
	for _, p := range parts {
		all = append(all, p.Turns...)
		if p.Open {
			out.Open, out.OpenSince = true, min(out.OpenSince, p.OpenSince)
		}
	}
	if !out.Open {
		out.OpenSince = 0
	}
	if len(parts) > 1 {
		slices.SortStableFunc(all, func(a, b Turn) int { return cmp.Compare(a.Start, b.Start) })
		united := all[:0]
		for _, t := range all {
			if k := len(united); k > 0 && t.Start < united[k-1].End {
				united[k-1].End = max(united[k-1].End, t.End)
				continue
			}
			united = append(united, t)
		}
		all = united
		for k := len(all); out.Open && k > 0 && all[k-1].End > out.OpenSince; k-- {
			out.OpenSince = min(out.OpenSince, all[k-1].Start)
			all = all[:k-1]
		}
	}
	for i := range all {
		all[i].Speaker = name
		out.Talk += all[i].End - all[i].Start
	}
	out.Turns = all
	return out
}
