package tui

import (
	"fmt"
	"math"
	"slices"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// What the keys do with lanes and annotations: select, name, merge, mute,
// bookmark, undo.

// selectBy moves the selection by lanes; without one it begins at the first
// lane, or at the last.
func (m *model) selectBy(by int) {
	s := m.session()
	n := len(s.Speakers)
	if n == 0 {
		return
	}
	i := s.Index(m.selected)
	switch {
	case i >= 0:
		i = min(max(i+by, 0), n-1)
	case by > 0:
		i = 0
	default:
		i = n - 1
	}
	m.selectLane(s, i)
}

// selectLane selects the i-th lane. Where lanes have one row, a notice shows
// what the second row would.
func (m *model) selectLane(s *display.Session, i int) {
	if i < 0 || i >= len(s.Speakers) {
		return
	}
	p := s.Speakers[i]
	m.selected = p.Label
	if m.layout().pitch == 1 && m.choice == nil {
		m.notify(fmt.Sprintf("%s  %s  %.0f%%  %s", p.Name, display.TalkText(p.TalkTime), 100*p.Share, display.Count(p.TurnCount, "turn")), p.Style)
	}
}

// withLane does something with the speaker of the row that is selected in the list, or else
// with the selected lane, or asks for one.
func (m *model) withLane(what string, do func(label string)) {
	label := m.selected
	r, ok := m.chosenRow()
	if ok && r.label != "" {
		label = r.label
	}
	switch s := m.session(); {
	case ok && r.label != "" && s.Index(label) < 0: // found by a search, in a replay
		m.notify(r.name+" has not spoken yet: "+m.keyOf("jump")+" goes there", canvas.Dim)
	case len(s.Speakers) == 0:
		m.notify("nobody has spoken yet", canvas.Dim)
	case s.Index(label) >= 0:
		do(label)
	default:
		m.askLane(laneChoice{prompt: func(name string) string { return what + " " + name + "?" }, do: do}, s.Current())
	}
}

// update changes the annotations, or shows why that is refused.
func (m *model) update(f func(protocol.Annotations) (protocol.Annotations, error)) bool {
	if err := m.annotations.Update(f); err != nil {
		m.notify(err.Error(), canvas.Bad)
		return false
	}
	return true
}

// askName is withLane for rename. Who types the name at once means the proposed lane.
func (m *model) askName() {
	if m.withLane("name", m.rename); m.choice != nil {
		m.choice.text = true
	}
}

func (m *model) rename(label string) {
	s := m.session()
	p := s.Speakers[s.Index(label)]
	text := p.Name
	if text == label || p.Recognised { // only a typed name is worth editing
		text = ""
	}
	m.input = &textInput{
		label: "name of " + p.Name + ":", style: p.Style, limit: protocol.MaxNameRunes, before: text,
		done: func(text string) {
			if m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename(label, text) }) {
				m.offerToRemember(label)
			}
		},
	}
}

func (m *model) merge(label string) {
	s := m.session()
	i := s.Index(label)
	if len(s.Speakers) < 2 {
		m.notify("there is no other speaker", canvas.Dim)
		return
	}
	from := s.Speakers[i].Name
	other := s.Speakers[(i+1)%len(s.Speakers)]
	if i > 0 {
		other = s.Speakers[i-1]
	}
	m.askLane(laneChoice{
		except: s.Speakers[i].Label,
		prompt: func(name string) string { return "merge " + from + " into " + name + "?" },
		do: func(into string) {
			if into == label {
				m.notify(from+" cannot be merged with itself", canvas.Dim)
				return
			}
			m.mergeInto(label, into, "merged "+from+" into ")
		},
	}, other.Label)
}

// mergeInto merges a label into another one. done says so, up to the name of that.
func (m *model) mergeInto(label, into, done string) {
	name := m.session().Name(into) // before it takes over the other's
	if m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge(label, into) }) {
		m.notify(done+name+", "+m.keyOf("undo")+" undoes it", canvas.Plain)
	}
}

// joinNewLabel asks who a new label is: the selected one, or else the
// first that has no answer yet. Choosing the label itself says that it is
// another person.
func (m *model) joinNewLabel() {
	s := m.session()
	label := ""
	for _, l := range m.state.NewLabels {
		l = protocol.Label(l)
		if s.Annotations.Root(l) != l || s.Index(l) < 0 || m.separate[l] {
			continue
		}
		if label == "" || l == m.selected {
			label = l
		}
	}
	if label == "" {
		m.notify("no label of a new connection is left to join", canvas.Dim)
		return
	}
	from := s.Name(label)
	m.askLane(laneChoice{
		prompt: func(name string) string {
			if name == from {
				return from + " is new, a person of its own?"
			}
			return from + " came after the reconnection: is it " + name + "?"
		},
		do: func(into string) {
			if into == label {
				m.separate[label] = true
				m.notify(from+" stays a person of its own", canvas.Plain)
				return
			}
			m.mergeInto(label, into, "joined "+from+" with ")
		},
	}, s.MatchFor(label))
}

func (m *model) toggleMute(label string) {
	a, _ := m.annotations.Load()
	muted := !a.Muted(label)
	m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Mute(label, muted), nil })
	name := m.session().Name(label)
	switch {
	case m.solo != "":
		m.notify(fmt.Sprintf("%s, but only %s counts until %s", display.MuteText(name, muted), m.session().Name(m.solo), m.keyOf("solo")), canvas.Plain)
	case muted:
		m.notify(display.MuteText(name, muted)+": not in the shares, "+m.keyOf("undo")+" undoes it", canvas.Plain)
	default:
		m.notify(display.MuteText(name, muted)+", "+m.keyOf("undo")+" undoes it", canvas.Plain)
	}
}

func (m *model) toggleSolo(label string) {
	if m.session().Index(m.solo) == m.session().Index(label) {
		m.solo = ""
		m.notify("all lanes again", canvas.Plain)
		return
	}
	m.solo = label
	m.notify("only "+m.session().Name(label)+", "+m.keyOf("solo")+" shows all lanes again", canvas.Plain)
}

func (m *model) toggleSort() {
	m.sortByTalk = !m.sortByTalk
	m.notify(map[bool]string{true: "lanes sorted by talk time", false: "lanes in order of first speech"}[m.sortByTalk], canvas.Plain)
}

func (m *model) undo() {
	was, is, ok := m.annotations.Undo()
	if !ok {
		m.notify("nothing to undo", canvas.Dim)
		return
	}
	m.notify("undone: "+display.ChangeText(is, was), canvas.Plain)
}

// bookmarkJump is the bookmark that the last jump led to, and the view then.
type bookmarkJump struct {
	at   float64
	view viewport
}

// afterBookmark is how many seconds of a replay still count as at the bookmark where it goes on.
const afterBookmark = 3

// addBookmark asks for the note of a bookmark: at the selected row of the list, at
// the cursor, at the present, as always in the presenter view, or when scrolled back, in the
// middle of the window. Its position is that of the key, not of the end of the note.
func (m *model) addBookmark() {
	w := m.window()
	at := m.session().Position
	r, chosen := m.chosenRow()
	switch {
	case m.presenter:
		at = m.state.Position
	case chosen:
		at = r.at
	case m.still() && m.cursor >= 0:
		at = min(m.cursor, at)
	case !w.follow && m.jump == (bookmarkJump{m.bookmark, m.view}): // at that bookmark
		at = m.bookmark
	case !w.follow:
		at = min(max(w.middle(), 0), at)
	}
	at = protocol.Round1ms(at)
	before := "" // of the bookmark that is there
	if i := slices.IndexFunc(m.session().Bookmarks, func(k protocol.Bookmark) bool { return k.At == at }); i >= 0 {
		before = m.session().Bookmarks[i].Note
	}
	m.input = &textInput{
		label: "bookmark " + display.Clock(at) + ", note:", style: canvas.Brand, limit: protocol.MaxNoteRunes, before: before,
		done: func(note string) {
			if m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(at, note) }) {
				m.bookmark = at
				m.notify(fmt.Sprintf("%s %s  %s", m.glyphs.Bookmark, display.Clock(at), display.TerminalSafe(note)), canvas.Brand)
			}
		},
	}
}

// jumpToBookmark goes to the next (+1) or the previous (-1) bookmark. It counts
// from the bookmark reached last, while the view is still there; else from the cursor,
// from the present, or when scrolled back, from the middle of the window.
func (m *model) jumpToBookmark(by int) {
	s := m.session()
	if m.noBookmarks() {
		return
	}
	w := m.window()
	from := w.middle()
	switch p := s.Playback; {
	case m.still() && m.cursor >= 0:
		from = m.cursor
	case m.jump == (bookmarkJump{m.bookmark, m.view}) && (p == nil || math.Abs(s.Position-m.bookmark) < afterBookmark*p.Speed):
		from = m.bookmark
	case w.follow:
		from = s.Position
	}
	// The first bookmark after from, or the last one before it.
	i := slices.IndexFunc(s.Bookmarks, func(k protocol.Bookmark) bool { return k.At > from || by < 0 && k.At == from })
	if i < 0 {
		i = len(s.Bookmarks)
	}
	if by < 0 {
		i--
	}
	if i < 0 || i >= len(s.Bookmarks) {
		m.notify(map[bool]string{true: "no bookmark after this", false: "no bookmark before this"}[by > 0], canvas.Dim)
		return
	}
	m.goToBookmark(s.Bookmarks[i].At)
}

// goToBookmark goes to the bookmark at a position, and describes it.
func (m *model) goToBookmark(at float64) {
	m.bookmark = at
	m.goTo(at)
	m.jump = bookmarkJump{at, m.view}
	all := m.session().Bookmarks
	i := slices.IndexFunc(all, func(k protocol.Bookmark) bool { return k.At == at })
	m.notify(fmt.Sprintf("%s %s  (%d of %d, %s removes it)  %s", m.glyphs.Bookmark, display.Clock(at), i+1, len(all), m.keyOf("remove bookmark"), display.TerminalSafe(all[i].Note)), canvas.Brand)
}

// goTo moves the window so that a position is in its middle, with the cursor if it stands
// still, or plays a recording from there, which the window and the presenter view follow.
func (m *model) goTo(at float64) {
	if m.o.Player == nil { // what does not show the position is closed
		if m.presenter = false; m.layout().side == 0 {
			m.list = nil
		}
	} else {
		m.o.Player.Seek(at) // at its end, it plays again
		m.view.scrolled, m.cursor = false, -1
		m.refresh() // the next key may come before the next tick
	}
	if m.still() {
		m.cursor = min(at, m.session().Position)
	}
	if w := m.window(); m.o.Player == nil && !m.view.showsAll() {
		m.view.scrollTo(w, at+w.span/2)
	}
}

// noBookmarks reports, also to the user, that there are none.
func (m *model) noBookmarks() bool {
	none := len(m.session().Bookmarks) == 0
	if none {
		m.notify("no bookmarks yet: "+m.keyOf("bookmark")+" sets one", canvas.Dim)
	}
	return none
}

// removeBookmark removes the bookmark that is selected in the list, or else was set or
// reached last.
func (m *model) removeBookmark() {
	if m.noBookmarks() {
		return
	}
	if r, ok := m.chosenRow(); ok && r.label == "" {
		m.bookmark = r.at
	}
	if !slices.ContainsFunc(m.session().Bookmarks, func(k protocol.Bookmark) bool { return k.At == m.bookmark }) {
		m.notify(m.keyOf("previous bookmark")+" and "+m.keyOf("next bookmark")+" choose the bookmark to remove", canvas.Dim)
		return
	}
	at := m.bookmark
	m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Unbookmark(at), nil })
	m.notify("removed the bookmark at "+display.Clock(at)+", "+m.keyOf("undo")+" brings it back", canvas.Plain)
}

// describeNewest describes the selected lane's newest turn in the window, or else its
// newest one.
func (m *model) describeNewest() {
	s := m.session()
	i := s.Index(m.selected)
	if i < 0 {
		m.notify("select a lane first, with "+m.keyOf("previous lane")+" and "+m.keyOf("next lane"), canvas.Dim)
		return
	}
	w := m.window()
	if !m.describeTurn(s, i, w.at(0), w.end()) && !m.describeTurn(s, i, 0, math.Inf(1)) {
		m.notify(s.Speakers[i].Name+" has no turn yet", canvas.Dim)
	}
}

// describeTurn shows who spoke when and for how long: the last turn of a lane in
// a stretch, in seconds. It reports whether there is one.
func (m *model) describeTurn(s *display.Session, i int, from, to float64) bool {
	p := s.Speakers[i]
	if p.Open && p.OpenSince < to && s.DecidedUntil() > from {
		m.notify(fmt.Sprintf("%s  since %s, still speaking", p.Name, display.ClockTenths(p.OpenSince)), p.Style)
		return true
	}
	for k := len(p.Turns) - 1; k >= 0; k-- {
		if t := p.Turns[k]; t.Start < to {
			if t.End <= from {
				return false
			}
			m.notify(fmt.Sprintf("%s  %s to %s, %.1f s", p.Name, display.ClockTenths(t.Start), display.ClockTenths(t.End), t.End-t.Start), p.Style)
			return true
		}
	}
	return false
}
