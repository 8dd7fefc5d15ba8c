package export

import (
	"cmp"
	"slices"

	"hubbub/protocol"
)

// minAlone is the shortest stretch that Alone returns, in seconds: at the ends of a
// turn there is often audio of other speakers.
const minAlone = 0.5

// Alone returns the longest stretches in which only this speaker, an index into
// Speakers, talks: in order of time, in total at most so many seconds.
func (d *Document) Alone(speaker int, most float64) (spans []protocol.Span) {
	for _, t := range d.Turns {
		if t.Speaker != speaker || t.End-t.Start < minAlone {
			continue
		}
		rest := []protocol.Span{{Start: t.Start, End: t.End}}
		for _, o := range d.Turns {
			if o.Speaker == speaker || o.Start >= t.End || o.End <= t.Start {
				continue
			}
			var left []protocol.Span
			for _, s := range rest {
				for _, part := range []protocol.Span{{Start: s.Start, End: min(s.End, o.Start)}, {Start: max(s.Start, o.End), End: s.End}} {
					if part.End-part.Start >= minAlone {
						left = append(left, part)
					}
				}
			}
			rest = left
		}
		spans = append(spans, rest...)
	}
	slices.SortStableFunc(spans, func(a, b protocol.Span) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	for i := range spans {
		spans[i].End = min(spans[i].End, spans[i].Start+most)
		most -= spans[i].End - spans[i].Start
	}
	spans = slices.DeleteFunc(spans, func(s protocol.Span) bool { return s.End <= s.Start })
	slices.SortFunc(spans, func(a, b protocol.Span) int { return cmp.Compare(a.Start, b.Start) })
	return spans
}
