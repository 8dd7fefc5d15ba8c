package secondpass

import (
	"cmp"
	"maps"
	"slices"

	"hubbub/protocol"
	"hubbub/protocol/evaluation"
)

// Relabel gives each speaker of the second pass the label of the live speaker with
// whom they share the most time, one to one, with the largest sum. Other speakers
// get labels that the session does not have. Merged labels are one live speaker,
// who gets a second label if the second pass has divided them. Turns that were moved
// are those of their new speaker.
func Relabel(live, second []protocol.Turn, annotations protocol.Annotations) []protocol.Turn {
	used, match := map[string]bool{}, map[string]string{}
	var ref, hyp []protocol.FileTurn
	for _, t := range live {
		owner := annotations.Owner(t)
		used[t.Speaker], used[owner] = true, true
		if owner == annotations.Root(t.Speaker) { // a moved turn says nothing about its new speaker
			match[owner] = cmp.Or(match[owner], t.Match)
		}
		ref = append(ref, protocol.FileTurn{Turn: protocol.Turn{Speaker: owner, Start: t.Start, End: t.End}})
	}
	for label := range annotations.Names() {
		used[label] = true
	}
	for _, m := range annotations.Merges() {
		used[m.From], used[m.Into] = true, true
	}
	for _, m := range annotations.Moves() {
		used[m.From], used[m.To] = true, true
	}
	for _, label := range annotations.MutedLabels() {
		used[label] = true
	}
	for _, t := range second {
		hyp = append(hyp, protocol.FileTurn{Turn: t})
	}
	labels := map[string]string{}
	// The only error that these turns can cause is that there are none.
	if report, err := evaluation.Score(ref, hyp, nil, evaluation.Options{}); err == nil {
		for liveLabel, label := range report.Files[0].Mapping {
			labels[label] = liveLabel
		}
	}
	people, speakers := byOwner(live, annotations), byOwner(second, protocol.Annotations{})
	for _, m := range annotations.Merges() {
		for _, speaker := range slices.Sorted(maps.Keys(speakers)) {
			if labels[speaker] == "" && mostly(speakers[speaker], people[annotations.Root(m.Into)]) {
				labels[speaker] = m.From
				break
			}
		}
	}
	next := 0
	turns := slices.Clone(second)
	for i := range turns {
		label, ok := labels[turns[i].Speaker]
		for ; !ok; next++ {
			label = protocol.SpeakerLabel(next)
			ok = !used[label]
		}
		labels[turns[i].Speaker] = label
		turns[i].Speaker, turns[i].Match = label, match[label]
	}
	return turns
}

// Change is a turn that only one of two results has.
type Change struct {
	Turn  protocol.Turn // with the speaker's name
	Added bool          // the second result has it
}

// Changes are the turns of either result of which less than half belongs to
// the same person in the other one, in order of time.
func Changes(before, after []protocol.Turn, annotations protocol.Annotations) []Change {
	var changes []Change
	was, is := byOwner(before, annotations), byOwner(after, annotations)
	compare := func(list, other map[string][]protocol.Turn, added bool) {
		for owner, turns := range list {
			for _, t := range turns {
				if shared(t, other[owner]) < (t.End-t.Start)/2 {
					t.Speaker = annotations.Name(owner)
					changes = append(changes, Change{t, added})
				}
			}
		}
	}
	compare(was, is, false)
	compare(is, was, true)
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Turn.Start, b.Turn.Start), cmp.Compare(a.Turn.End, b.Turn.End), cmp.Compare(a.Turn.Speaker, b.Turn.Speaker))
	})
	return changes
}

// byOwner divides turns, which are in order of start, by the label that stands for their
// person.
func byOwner(turns []protocol.Turn, annotations protocol.Annotations) map[string][]protocol.Turn {
	lists := map[string][]protocol.Turn{}
	for _, t := range turns {
		owner := annotations.Owner(t)
		lists[owner] = append(lists[owner], t)
	}
	return lists
}

// mostly reports whether others, in order of start, cover more than half of the turns.
func mostly(turns, others []protocol.Turn) bool {
	covered, total := 0.0, 0.0
	for _, t := range turns {
		covered += shared(t, others)
		total += t.End - t.Start
	}
	return covered > total/2
}

// shared is how many seconds of a turn are covered by others, in order of start.
func shared(t protocol.Turn, others []protocol.Turn) float64 {
	seconds, until := 0.0, t.Start
	for _, o := range others {
		if o.Start >= t.End {
			break
		}
		if end := min(o.End, t.End); end > until {
			seconds += end - max(o.Start, until)
			until = end
		}
	}
	return seconds
}
