// Package evaluation measures a diarization against the truth: the diarization
// error rate as NIST defines it, and what it does not show, how stable the
// labels are.
package evaluation

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Turn is a stretch of speech of one speaker in one file, in seconds.
type Turn struct {
	File, Speaker string
	Start, End    float64
}

// Region is a stretch of a file that is to be scored (a line of a UEM file),
// in seconds.
type Region struct {
	File       string
	Start, End float64
}

type span struct{ start, end float64 }

// recording is one file, ready to be swept: for each speaker and each label,
// numbered in order of name, its turns in order of time, merged where they
// touch.
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
func recordings(ref, hyp []Turn, uem []Region) ([]*recording, error) {
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
		if !ordered(u.Start, u.End) {
			return nil, fmt.Errorf("scored region of %s: it ends (%v) before it starts (%v)", u.File, u.End, u.Start)
		}
		r := of(u.File)
		r.regions = append(r.regions, span{u.Start, u.End})
	}
	known := func(file string) bool { return uem == nil || byFile[file] != nil }

	refs, err := bySpeaker(ref, known)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	hyps, err := bySpeaker(hyp, known)
	if err != nil {
		return nil, fmt.Errorf("hypothesis: %w", err)
	}
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
	sort.Slice(all, func(i, j int) bool { return all[i].file < all[j].file })
	return all, nil
}

func ordered(start, end float64) bool {
	return end >= start && !math.IsInf(start, 0) && !math.IsInf(end, 0) // NaN compares false
}

func bySpeaker(turns []Turn, known func(string) bool) (map[string]map[string][]span, error) {
	files := map[string]map[string][]span{}
	for _, t := range turns {
		if !ordered(t.Start, t.End) {
			return nil, fmt.Errorf("a turn of %s in %s does not end (%v) after its start (%v)", t.Speaker, t.File, t.End, t.Start)
		}
		if !known(t.File) {
			continue
		}
		if files[t.File] == nil {
			files[t.File] = map[string][]span{}
		}
		if t.End > t.Start {
			files[t.File][t.Speaker] = append(files[t.File][t.Speaker], span{t.Start, t.End})
		}
	}
	return files, nil
}

func inOrder(turns map[string][]span) (names []string, merged [][]span) {
	for name := range turns {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		merged = append(merged, merge(turns[name]))
	}
	return names, merged
}

// merge sorts spans and joins those that touch or overlap.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return 0
	})
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

// extent is the whole of what is known of a file.
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
