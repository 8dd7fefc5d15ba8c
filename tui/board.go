package tui

import (
	"cmp"
	"slices"

	"hubbub/protocol"
)

// board is a State as its annotations want it: what all regions of the screen
// draw. The lanes of its Timeline and its people go together, in the order in
// which they are shown.
type board struct {
	State
	people []person
	marks  []protocol.Bookmark
	notes  protocol.Annotations
}

// person is one lane's owner: a label, and all that was merged into it.
type person struct {
	root  string // the label that stands for them in the annotations
	name  string // clean, never empty
	role  role   // their colour, which no renaming or sorting changes
	muted bool   // drawn faintly, left out of the shares
	talk  float64
	share float64 // of the talk time of all who are not muted, 0..1
	turns int     // the open one included
}

// board annotates the snapshot that the timeline shows.
func (m *model) board() *board {
	if m.frozen != nil {
		return m.annotate(*m.frozen)
	}
	return m.annotate(m.state)
}

// annotated is a State as a store wants it, outside of the screen.
func annotated(s State, store *protocol.AnnotationsStore) *board {
	if store == nil {
		store = protocol.NewAnnotationsStore(protocol.Annotations{})
	}
	return (&model{store: store}).annotate(s)
}

func (m *model) annotate(s State) *board {
	a, revision := m.store.Load()
	b := &board{State: s, marks: a.Bookmarks(), notes: a}
	b.Timeline = m.apply(a, revision, s.Timeline)
	roots := a.Roots(s.Timeline)
	if len(roots) != len(b.Timeline.Lanes) { // a label stands twice: no Timeline does that
		roots = roots[:0]
		for _, l := range b.Timeline.Lanes {
			roots = append(roots, protocol.Label(l.Speaker))
		}
	}
	total := 0.0
	b.people = make([]person, len(roots))
	for i, root := range roots {
		lane := b.Timeline.Lanes[i]
		p := person{root: root, name: Clean(lane.Speaker), talk: talk(lane, s), turns: len(lane.Turns)}
		if p.name == "" {
			p.name = "(no name)"
		}
		if lane.Open {
			p.turns++
		}
		p.role = laneRole(max(slices.IndexFunc(s.Timeline.Lanes, func(l protocol.Lane) bool { return protocol.Label(l.Speaker) == root }), 0))
		p.muted = a.Muted(root) || m.solo != "" && a.Root(m.solo) != root
		if !p.muted {
			total += p.talk
		}
		b.people[i] = p
	}
	for i := range b.people {
		if p := &b.people[i]; total > 0 && !p.muted {
			p.share = p.talk / total
		}
	}
	if m.byTalk {
		b.sortByTalk()
	}
	return b
}

// sortByTalk orders by the length of finished turns: an open one would have
// people change places while they speak.
func (b *board) sortByTalk() {
	order := make([]int, len(b.people))
	for i := range order {
		order[i] = i
	}
	was := b.Timeline.Lanes
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(was[j].Talk, was[i].Talk) })
	lanes, people := make([]protocol.Lane, len(order)), make([]person, len(order))
	for to, from := range order {
		lanes[to], people[to] = was[from], b.people[from]
	}
	b.Timeline.Lanes, b.people = lanes, people
}

// index is where a label's person stands, or -1.
func (b *board) index(label string) int {
	if label == "" {
		return -1
	}
	root := b.notes.Root(label)
	return slices.IndexFunc(b.people, func(p person) bool { return p.root == root })
}

// apply keeps the newest annotated timeline: to unite hours of turns twenty
// times a second would be noticed.
func (m *model) apply(a protocol.Annotations, revision int64, t protocol.Snapshot) protocol.Snapshot {
	if k := &m.applied; k.valid && k.revision == revision && sameLanes(k.of, t.Lanes) {
		t.Lanes = k.lanes
		return t
	}
	out := a.Apply(t)
	m.applied = applied{true, revision, t.Lanes, out.Lanes}
	return out
}

type applied struct {
	valid    bool
	revision int64
	of       []protocol.Lane
	lanes    []protocol.Lane
}

// sameLanes says whether two timelines look the same. The finished turns of a
// label only ever grow, so that their number tells.
func sameLanes(a, b []protocol.Lane) bool {
	return slices.EqualFunc(a, b, func(x, y protocol.Lane) bool {
		return x.Speaker == y.Speaker && len(x.Turns) == len(y.Turns) && x.Open == y.Open && x.OpenSince == y.OpenSince && x.Talk == y.Talk
	})
}
