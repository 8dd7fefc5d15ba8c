package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Speaker is one person of a timeline: a label with all labels that were merged
// into it.
type Speaker struct {
	// Lane holds the turns; its Speaker is the name, unique in the timeline.
	// Turns of merged labels that overlap are one turn; while one of the labels
	// has an open turn, finished turns that reach into it are part of it.
	Lane
	// Label is the label that stands for the person, Labels are all of them:
	// Label, then the merged ones in order of first speech.
	Label  string
	Labels []string
	// Index is the position of Label in Snapshot.Lanes; where it has no lane,
	// that of the first merged label, or the next one that no lane has. It does not
	// change with names and merges.
	Index int
	Muted bool
	// Recognised says that the name is that of a voiceprint; it was not typed.
	Recognised bool
}

// Speakers are the speakers of a timeline in order of first speech. It is the
// only place where labels become names: every display and export uses it. What
// has no annotations is shared with the snapshot: read only.
func (a Annotations) Speakers(s Snapshot) []Speaker {
	type person struct {
		Speaker
		lanes []Lane
		gave  bool // a turn to another person
	}
	var people []*person
	byLabel := make(map[string]*person, len(s.Lanes))
	of := func(root string, index int) *person {
		p := byLabel[root]
		if p == nil {
			p = &person{Speaker: Speaker{Label: root, Labels: []string{root}, Index: index, Muted: a.Muted(root)}}
			byLabel[root] = p
			people = append(people, p)
		}
		return p
	}
	for i, l := range s.Lanes {
		p := of(a.Root(l.Speaker), i)
		if label := Label(l.Speaker); label == p.Label {
			p.Index = i
		} else {
			p.Labels = append(p.Labels, label)
		}
		p.lanes = append(p.lanes, l)
	}
	next := len(s.Lanes) // index of a person without a lane
	for _, m := range a.moves {
		from, to := byLabel[a.Root(m.From)], a.Root(m.To)
		if from == nil || from.Label == to {
			continue
		}
		if moved := takeTurns(from.lanes, m); len(moved) > 0 {
			from.gave = true
			into := of(to, next) // in a replay, they may not have spoken yet
			next = max(next, into.Index+1)
			into.lanes = append(into.lanes, moved...)
		}
	}
	taken := make(map[string]bool, len(people))
	var speakers []Speaker
	for _, p := range people {
		spoke := slices.ContainsFunc(p.lanes, func(l Lane) bool { return l.Open || len(l.Turns) > 0 })
		if p.gave && !spoke { // all turns belong to others
			continue
		}
		name := a.Name(p.Label)
		if i := slices.IndexFunc(p.lanes, func(l Lane) bool { return l.Match != "" }); i >= 0 && name == p.Label {
			name, p.Recognised = p.lanes[i].Match, true // a typed name comes before a recognised one
		}
		name = unique(name, taken)
		taken[name] = true
		p.Lane = unite(name, p.lanes)
		speakers = append(speakers, p.Speaker)
	}
	return speakers
}

// takeTurns removes the turns that a move covers from the lanes of a person, and
// returns them, by lane. The lanes' turns are shared, and copied before they change.
func takeTurns(lanes []Lane, m Move) (moved []Lane) {
	for i := range lanes {
		l := &lanes[i]
		// Turns are in order and do not overlap, and so are their middles.
		from, _ := slices.BinarySearchFunc(l.Turns, m.Start, byMiddle)
		to, _ := slices.BinarySearchFunc(l.Turns, m.End, byMiddle)
		if from >= to {
			continue
		}
		taken := Lane{Speaker: l.Speaker, Turns: l.Turns[from:to:to]}
		for _, t := range taken.Turns {
			taken.Talk += t.End - t.Start
		}
		moved = append(moved, taken)
		l.Turns, l.Talk = slices.Concat(l.Turns[:from], l.Turns[to:]), l.Talk-taken.Talk
	}
	return moved
}

func byMiddle(t Turn, at float64) int { return cmp.Compare((t.Start+t.End)/2, at) }

// unique distinguishes two people of the same name. Rename refuses such names, but a
// service may send a label that is the name of another one.
func unique(name string, taken map[string]bool) string {
	for i, plain := 2, name; taken[name]; i++ {
		name = fmt.Sprintf("%s (%d)", plain, i)
	}
	return name
}

// unite merges the lanes of one person.
func unite(name string, parts []Lane) Lane {
	if len(parts) == 1 && parts[0].Speaker == name {
		return parts[0]
	}
	out := Lane{Speaker: name}
	var all []Turn
	for _, p := range parts {
		all = append(all, p.Turns...)
		if p.Open && (!out.Open || p.OpenSince < out.OpenSince) {
			out.Open, out.OpenSince = true, p.OpenSince
		}
	}
	if len(parts) > 1 {
		slices.SortStableFunc(all, byStart)
		united := all[:0]
		for _, t := range all {
			if k := len(united); k > 0 && t.Start < united[k-1].End {
				united[k-1].End = max(united[k-1].End, t.End)
				united[k-1].Text = strings.TrimSpace(united[k-1].Text + " " + t.Text)
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
