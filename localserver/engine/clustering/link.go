package clustering

// Who goes on without a pause is mostly the same person, and what follows in
// another local mostly somebody else, however the pieces sound: of remembered
// pieces that follow each other in one local 96 % were one person's, of others
// 55 % (104 recordings, see the engine's README). A sentence that was recorded on another
// day, or said with the head turned, sounds like somebody new for seconds; that
// nobody paused in between does not change with it.

// link is how a remembered piece follows the one remembered before it.
type link int8

const (
	unlinked link = 0
	goesOn   link = 1  // one local has talked since, without a pause
	takesUp  link = -1 // another local talked then
)

const (
	// pauseMost is how long a pause, in frames, what goes on has at most.
	pauseMost = 20
	// breath is how long a pause, in frames, is none: of voices that were founded right
	// after somebody's speech 44 % were of people known already, after a pause 16 %.
	breath = 4
	// linkMost is how far, in frames, pieces of two locals lie apart at most for
	// the one to take up what the other said.
	linkMost = 150
	// linkedShare is which part of the pieces of two voices' one with fewer must go on
	// where the other talked for them to be one person's.
	linkedShare = 0.5
)

// goesOn tells whether a local talks from frame from to frame to without a pause.
func (w *Window) goesOn(local, from, to int) bool {
	pause := 0
	for _, x := range w.Locals[local].Active[from:to] {
		if x > 0.5 {
			pause = 0
		} else if pause++; pause > pauseMost {
			return false
		}
	}
	return true
}

// link tells how a piece of the window follows the newest item.
func (m *memory) link(w *Window, p *piece) link {
	if len(m.items) == 0 {
		return unlinked
	}
	from, to := m.items[len(m.items)-1].at-w.First, p.centre
	switch {
	case from < 0 || to <= from:
		return unlinked
	case w.goesOn(p.local, from, to):
		return goesOn
	case to-from > linkMost || w.Locals[p.local].Active[from] >= 0.5:
		return unlinked
	}
	for k := range w.Locals {
		if k != p.local && w.Locals[k].Active[from] > 0.5 {
			return takesUp
		}
	}
	return unlinked
}

// pull is how much likelier item i is voice v's for what its neighbours are.
func (m *memory) pull(i, v int, p *Params) (more float64) {
	weight := func(l link) float64 {
		if l == takesUp {
			return -p.Link * p.LinkOther
		}
		return p.Link * float64(l)
	}
	if i > 0 && m.items[i-1].voice == v {
		more += weight(m.items[i].link)
	}
	if i+1 < len(m.items) && m.items[i+1].voice == v {
		more += weight(m.items[i+1].link)
	}
	return more
}

// crossings counts the items that go on where one of the other side talked. An item's
// side is 0 or 1, or nobody for neither.
func (m *memory) crossings(side func(i int) int8) (n int) {
	for i := 1; i < len(m.items); i++ {
		if m.items[i].link != goesOn {
			continue
		}
		if a, b := side(i-1), side(i); a != nobody && b != nobody && a != b {
			n++
		}
	}
	return n
}

// inside tells whether a group begins in the middle of its local's speech, right
// after a piece that sounds most like voice v.
func (c *Clusterer) inside(w *Window, g *group, v int) bool {
	var first, before *piece
	for i := range c.pieces {
		if p := &c.pieces[i]; p.group == g.first && (first == nil || p.centre < first.centre) {
			first = p
		}
	}
	for i := range c.pieces {
		if p := &c.pieces[i]; p.local == first.local && p.group != g.first && p.centre < first.centre && (before == nil || p.centre > before.centre) {
			before = p
		}
	}
	if before == nil {
		return false
	}
	from, _ := w.Span(first.Piece)
	if _, to := w.Span(before.Piece); from-to > breath {
		return false
	}
	for o := range c.voices {
		if before.Embedding.Dot(&c.voices[o].centre) > before.Embedding.Dot(&c.voices[v].centre) {
			return false
		}
	}
	return true
}
