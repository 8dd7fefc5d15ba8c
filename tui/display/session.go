package display

import (
	"cmp"
	"slices"
	"strings"

	"hubbub/protocol"
	"hubbub/tui/canvas"
)

// Session is a State with its annotations applied: what all regions of the
// screen, the summary and the accessible display show.
type Session struct {
	State
	Speakers    []Speaker // in the order of their lanes
	Bookmarks   []protocol.Bookmark
	Annotations protocol.Annotations
}

// Speaker is one lane of the screen.
type Speaker struct {
	protocol.Speaker
	Name      string       // safe for a terminal, never empty
	Style     canvas.Style // the same whatever the order and the names
	Muted     bool         // drawn faint, without a share
	TalkTime  float64      // seconds, the decided part of an open turn included
	Share     float64      // of the talk time of all who are not muted, 0 to 1
	TurnCount int          // the open one included
}

// Marked is the name with the mark of recognised ones, for places without a
// column for it.
func (p Speaker) Marked(g *canvas.Glyphs) string {
	if p.Recognised {
		return g.Recognised + p.Name
	}
	return p.Name
}

// Speaking reports whether a speaker is speaking at this moment, which nobody knows while there is no stream.
func (s *Session) Speaking(p Speaker) bool { return p.Open && s.Connected() }

// NewSession applies annotations to a State, outside of the screen; a nil store
// has none.
func NewSession(s State, store *protocol.AnnotationsStore) *Session {
	a := protocol.Annotations{}
	if store != nil {
		a, _ = store.Load()
	}
	return s.Annotate(a, a.Speakers(s.Timeline), "")
}

// Annotate builds a session from a's speakers. With solo, the label of a
// speaker, all others are muted, and that speaker is not.
func (s State) Annotate(a protocol.Annotations, speakers []protocol.Speaker, solo string) *Session {
	out := &Session{State: s, Bookmarks: a.Bookmarks(), Annotations: a, Speakers: make([]Speaker, len(speakers))}
	total := 0.0
	for i, p := range speakers {
		muted := p.Muted
		if solo != "" {
			muted = a.Root(solo) != p.Label
		}
		v := Speaker{
			Speaker: p, Name: cmp.Or(TerminalSafe(p.Lane.Speaker), protocol.NoLabel), Style: canvas.Speaker(p.Index),
			Muted: muted, TalkTime: p.Talk, TurnCount: len(p.Turns),
		}
		if p.Open {
			v.TalkTime += max(s.DecidedUntil()-p.OpenSince, 0)
			v.TurnCount++
		}
		if !v.Muted {
			total += v.TalkTime
		}
		out.Speakers[i] = v
	}
	for i := range out.Speakers {
		if p := &out.Speakers[i]; total > 0 && !p.Muted {
			p.Share = p.TalkTime / total
		}
	}
	return out
}

// Index is the position of the speaker whom a label belongs to, or -1.
func (s *Session) Index(label string) int {
	if label == "" {
		return -1
	}
	root := s.Annotations.Root(label)
	return slices.IndexFunc(s.Speakers, func(p Speaker) bool { return p.Label == root })
}

// Match is the name under which the speaker of a label was recognised; "" = not at all.
// A typed name does not change it.
func (s *Session) Match(label string) string {
	root := s.Annotations.Root(label)
	for _, l := range s.Timeline.Lanes {
		if l.Match != "" && s.Annotations.Root(l.Speaker) == root {
			return l.Match
		}
	}
	return ""
}

// Name is the name of the speaker whom a label belongs to.
func (s *Session) Name(label string) string {
	if i := s.Index(label); i >= 0 {
		return s.Speakers[i].Name
	}
	return TerminalSafe(s.Annotations.Name(label))
}

// Current is the label of the first who is speaking, or of the first speaker.
func (s *Session) Current() string {
	i := slices.IndexFunc(s.Speakers, func(p Speaker) bool { return p.Open })
	return s.Speakers[max(i, 0)].Label
}

// MatchFor proposes which speaker a new label may be: whoever had the
// same label before, else the first speaker without a new label.
func (s *Session) MatchFor(label string) string {
	if i := strings.LastIndexByte(label, '#'); i > 0 {
		if earlier := s.Annotations.Root(label[:i]); s.Index(earlier) >= 0 {
			return earlier
		}
	}
	for _, p := range s.Speakers {
		if !slices.ContainsFunc(s.NewLabels, func(l string) bool { return protocol.Label(l) == p.Label }) {
			return p.Label
		}
	}
	return label
}

// Entry is a finished turn or a bookmark.
type Entry struct {
	At   float64
	Lane int // index of the speaker; -1 = a bookmark
	Turn protocol.Turn
	Note string
}

// Latest returns the n finished turns and bookmarks that began last, newest
// first. Bookmarks of a replay that it has not come to are left out.
func (s *Session) Latest(n int) []Entry {
	var out []Entry
	for i, p := range s.Speakers {
		for _, t := range p.Turns[max(len(p.Turns)-n, 0):] {
			out = append(out, Entry{At: t.Start, Lane: i, Turn: t})
		}
	}
	bookmarks := slices.Clone(s.Bookmarks)
	bookmarks = slices.DeleteFunc(bookmarks, func(k protocol.Bookmark) bool { return k.At > s.Position })
	for _, k := range bookmarks[max(len(bookmarks)-n, 0):] {
		out = append(out, Entry{At: k.At, Lane: -1, Note: k.Note})
	}
	slices.SortStableFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.At, a.At), a.Lane-b.Lane)
	})
	return out[:min(len(out), n)]
}

// MuteText confirms a change of a mute.
func MuteText(name string, muted bool) string {
	return name + map[bool]string{true: " is muted", false: " is no longer muted"}[muted]
}

// ChangeText names the change that leads from one state of the annotations to
// the next.
func ChangeText(from, to protocol.Annotations) string {
	if a, b := from.Merges(), to.Merges(); len(b) > len(a) {
		m := b[len(b)-1]
		return "merge of " + TerminalSafe(from.Name(m.From)) + " into " + TerminalSafe(from.Name(m.Into))
	}
	if a, b := from.Moves(), to.Moves(); len(b) > len(a) {
		m := b[len(b)-1]
		return "the turn at " + Clock(m.Start) + " moved to " + TerminalSafe(to.Name(m.To))
	}
	if k, ok := missingBookmark(to, from); ok {
		if _, replaced := missingBookmark(from, to); replaced {
			return "note of the bookmark at " + Clock(k.At)
		}
		return "bookmark at " + Clock(k.At)
	}
	if k, ok := missingBookmark(from, to); ok {
		return "removal of the bookmark at " + Clock(k.At)
	}
	for _, label := range to.MutedLabels() {
		if !from.Muted(label) {
			return "mute of " + TerminalSafe(to.Name(label))
		}
	}
	for _, label := range from.MutedLabels() {
		if !to.Muted(label) {
			return "unmute of " + TerminalSafe(to.Name(label))
		}
	}
	names, before := to.Names(), from.Names()
	for label, name := range names {
		if before[label] != name {
			return "name " + TerminalSafe(name) + " of " + TerminalSafe(label)
		}
	}
	for label, name := range before {
		if names[label] != name {
			return "removal of the name " + TerminalSafe(name)
		}
	}
	return "no change"
}

// missingBookmark is the first bookmark of a that b does not have.
func missingBookmark(a, b protocol.Annotations) (k protocol.Bookmark, found bool) {
	i := slices.IndexFunc(a.Bookmarks(), func(k protocol.Bookmark) bool { return !slices.Contains(b.Bookmarks(), k) })
	if i < 0 {
		return k, false
	}
	return a.Bookmarks()[i], true
}
