package tui

import (
	"cmp"
	"slices"
	"strings"

	"hubbub/protocol"
	"hubbub/tui/canvas"
)

// session is a State with its annotations applied: what all regions of the
// screen, the summary and the accessible display show.
type session struct {
	State
	speakers    []speaker // in the order of their lanes
	bookmarks   []protocol.Bookmark
	annotations protocol.Annotations
}

// speaker is one lane of the screen.
type speaker struct {
	protocol.Speaker
	name  string       // safe for a terminal, never empty
	style canvas.Style // the same whatever the order and the names
	muted bool         // drawn faint, without a share
	talk  float64      // seconds, the decided part of an open turn included
	share float64      // of the talk time of all who are not muted, 0 to 1
	turns int          // the open one included
}

// marked is the name with the mark of recognised ones, for places without a
// column for it.
func (p speaker) marked(g *canvas.Glyphs) string {
	if p.Recognised {
		return g.Recognised + p.name
	}
	return p.name
}

// speaking reports whether a speaker is speaking at this moment.
func (s *session) speaking(p speaker) bool { return p.Open && !s.Finished }

// newSession applies annotations to a State, outside of the screen; a nil store
// has none.
func newSession(s State, store *protocol.AnnotationsStore) *session {
	a := protocol.Annotations{}
	if store != nil {
		a, _ = store.Load()
	}
	return s.annotate(a, a.Speakers(s.Timeline), "")
}

// annotate builds a session from a's speakers. With solo, the label of a
// speaker, all others are muted, and that speaker is not.
func (s State) annotate(a protocol.Annotations, speakers []protocol.Speaker, solo string) *session {
	out := &session{State: s, bookmarks: a.Bookmarks(), annotations: a, speakers: make([]speaker, len(speakers))}
	total := 0.0
	for i, p := range speakers {
		muted := p.Muted
		if solo != "" {
			muted = a.Root(solo) != p.Label
		}
		v := speaker{
			Speaker: p, name: cmp.Or(Clean(p.Lane.Speaker), protocol.NoLabel), style: canvas.Speaker(p.Index),
			muted: muted, talk: p.Talk, turns: len(p.Turns),
		}
		if p.Open {
			v.talk += max(s.decided()-p.OpenSince, 0)
			v.turns++
		}
		if !v.muted {
			total += v.talk
		}
		out.speakers[i] = v
	}
	for i := range out.speakers {
		if p := &out.speakers[i]; total > 0 && !p.muted {
			p.share = p.talk / total
		}
	}
	return out
}

// session is what the screen shows: the frozen snapshot, or the newest.
func (m *model) session() *session {
	if m.frozen != nil {
		return m.annotate(*m.frozen)
	}
	return m.annotate(m.state)
}

func (m *model) annotate(s State) *session {
	a, revision := m.annotations.Load()
	if c := &m.cache; !c.valid || c.revision != revision || c.texts != s.Timeline.Texts || !equalLanes(c.lanes, s.Timeline.Lanes) {
		*c = speakerCache{true, revision, s.Timeline.Texts, s.Timeline.Lanes, a.Speakers(s.Timeline)}
	}
	out := s.annotate(a, m.cache.speakers, m.solo)
	if m.sortByTalk {
		// By finished turns only: else speakers would change places while they
		// speak.
		slices.SortStableFunc(out.speakers, func(p, q speaker) int { return cmp.Compare(q.Lane.Talk, p.Lane.Talk) })
	}
	return out
}

// speakerCache keeps the newest speakers: merging hours of turns twenty times a
// second would cost too much.
type speakerCache struct {
	valid    bool
	revision int64           // of the annotations
	texts    int             // of the timeline
	lanes    []protocol.Lane // of the timeline
	speakers []protocol.Speaker
}

// index is the position of the speaker whom a label belongs to, or -1.
func (s *session) index(label string) int {
	if label == "" {
		return -1
	}
	root := s.annotations.Root(label)
	return slices.IndexFunc(s.speakers, func(p speaker) bool { return p.Label == root })
}

// match is the name under which the speaker of a label was recognised; "" = not at all.
// A typed name does not change it.
func (s *session) match(label string) string {
	root := s.annotations.Root(label)
	for _, l := range s.Timeline.Lanes {
		if l.Match != "" && s.annotations.Root(l.Speaker) == root {
			return l.Match
		}
	}
	return ""
}

// name is the name of the speaker whom a label belongs to.
func (s *session) name(label string) string {
	if i := s.index(label); i >= 0 {
		return s.speakers[i].name
	}
	return Clean(s.annotations.Name(label))
}

// current is the label of the first who is speaking, or of the first speaker.
func (s *session) current() string {
	for _, p := range s.speakers {
		if p.Open {
			return p.Label
		}
	}
	return s.speakers[0].Label
}

// matchFor proposes which speaker a new label may be: whoever had the
// same label before, else the first speaker without a new label.
func (s *session) matchFor(label string) string {
	if i := strings.LastIndexByte(label, '#'); i > 0 {
		if earlier := s.annotations.Root(label[:i]); s.index(earlier) >= 0 {
			return earlier
		}
	}
	isNew := map[string]bool{}
	for _, l := range s.NewLabels {
		isNew[protocol.Label(l)] = true
	}
	for _, p := range s.speakers {
		if !isNew[p.Label] {
			return p.Label
		}
	}
	return label
}
