package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
)

// selectBy moves the selection by so many lanes; without one it begins at the
// first lane, or at the last.
func (m *model) selectBy(by int) {
	b := m.board()
	n := len(b.people)
	if n == 0 {
		return
	}
	i := b.index(m.selected)
	switch {
	case i >= 0:
		i = min(max(i+by, 0), n-1)
	case by > 0:
		i = 0
	default:
		i = n - 1
	}
	m.selectLane(b, i)
}

// selectLane selects the i-th person shown. Where lanes have one row, what the
// second one would say is said below.
func (m *model) selectLane(b *board, i int) {
	if i < 0 || i >= len(b.people) {
		return
	}
	p := b.people[i]
	m.selected = p.root
	if m.layout().pitch == 1 && m.pick == nil {
		m.say(fmt.Sprintf("%s  %s  %.0f%%  %s", p.name, talkTime(p.talk), 100*p.share, count(int64(p.turns), "turn")), p.role)
	}
}

// pick is a question for a lane.
type pick struct {
	prompt func(name string) string
	do     func(m *model, root string) tea.Cmd
}

// choose asks for a lane, proposing one.
func (m *model) choose(p pick, propose string) {
	m.selected = propose
	m.pick = &p
}

// pickKey moves the question's selection, answers or drops it.
func (m *model) pickKey(name string) tea.Cmd {
	switch name {
	case "up", "k", "left":
		m.selectBy(-1)
	case "down", "j", "right", "tab":
		m.selectBy(1)
	case "esc", "q":
		m.pick = nil
	case "enter", " ":
		return m.picked()
	default:
		if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
			if b := m.board(); int(name[0]-'1') < len(b.people) {
				m.selected = b.people[name[0]-'1'].root
				return m.picked()
			}
		}
	}
	return nil
}

func (m *model) picked() tea.Cmd {
	p := m.pick
	m.pick = nil
	if m.board().index(m.selected) < 0 {
		return nil
	}
	return p.do(m, m.selected)
}

// withLane does something with the selected lane, or asks for one.
func withLane(what string, do func(m *model, root string) tea.Cmd) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		b := m.board()
		if len(b.people) == 0 {
			m.say("nobody has spoken yet", roleDim)
			return nil
		}
		if b.index(m.selected) >= 0 {
			return do(m, m.selected)
		}
		m.choose(pick{func(name string) string { return what + " " + name + "?" }, do}, b.likely())
		return nil
	}
}

// likely is who is meant, most likely: who speaks now, else the first.
func (b *board) likely() string {
	for i, l := range b.Timeline.Lanes {
		if l.Open {
			return b.people[i].root
		}
	}
	return b.people[0].root
}

// rename asks for a person's name.
func (m *model) rename(root string) tea.Cmd {
	b := m.board()
	p := b.people[b.index(root)]
	text := p.name
	if text == root { // a label is no beginning for a name
		text = ""
	}
	m.ask(entry{
		prompt: "name of " + p.name + ":", role: p.role, limit: protocol.MaxNameRunes, before: text,
		done: func(m *model, text string) tea.Cmd {
			m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Rename(root, text) })
			return nil
		},
	})
	return nil
}

// merge asks into whom a person is to be merged.
func (m *model) merge(root string) tea.Cmd {
	b := m.board()
	i := b.index(root)
	if len(b.people) < 2 {
		m.say("there is nobody to merge with", roleDim)
		return nil
	}
	from := b.people[i].name
	other := b.people[(i+1)%len(b.people)]
	if i > 0 {
		other = b.people[i-1]
	}
	m.choose(pick{
		prompt: func(name string) string { return "merge " + from + " into " + name + "?" },
		do: func(m *model, into string) tea.Cmd {
			if into == root {
				m.say(from+" is one person already", roleDim)
				return nil
			}
			m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge(root, into) })
			m.say("merged "+from+" into "+m.board().name(into)+", u undoes it", rolePlain)
			return nil
		},
	}, other.root)
	return nil
}

func (b *board) name(root string) string {
	if i := b.index(root); i >= 0 {
		return b.people[i].name
	}
	return Clean(b.notes.Name(root))
}

func (m *model) toggleMute(root string) tea.Cmd {
	m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Mute(root, !a.Muted(root)), nil })
	return nil
}

func (m *model) toggleSolo(root string) tea.Cmd {
	if m.solo == root {
		m.solo = ""
	} else {
		m.solo = root
	}
	return nil
}

// undo takes the newest change of names, merges, mutes and bookmarks back.
func (m *model) undo() {
	was, is, ok := m.store.Undo()
	if !ok {
		m.say("nothing to undo", roleDim)
		return
	}
	m.say("undone: "+difference(is, was), rolePlain)
}

// difference names in a few words what leads from one state of the annotations
// to the next.
func difference(from, to protocol.Annotations) string {
	switch a, b := from.Merges(), to.Merges(); {
	case len(b) > len(a):
		m := b[len(b)-1]
		return "merge of " + Clean(from.Name(m.From)) + " into " + Clean(from.Name(m.Into))
	case len(b) < len(a):
		return "a merge taken back"
	}
	switch a, b := len(from.Bookmarks()), len(to.Bookmarks()); {
	case b > a:
		return "a bookmark"
	case b < a:
		return "a bookmark removed"
	}
	names, before := to.Names(), from.Names()
	for label, name := range names {
		if before[label] != name {
			return "the name " + Clean(name)
		}
	}
	for label, name := range before {
		if names[label] != name {
			return "the loss of the name " + Clean(name)
		}
	}
	return "a change"
}

// update changes the annotations, and says why when that is refused.
func (m *model) update(f func(protocol.Annotations) (protocol.Annotations, error)) bool {
	if err := m.store.Update(f); err != nil {
		m.say(err.Error(), roleBad)
		return false
	}
	return true
}
