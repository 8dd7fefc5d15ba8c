package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
)

// joinFresh asks who a label is that came with a new stream after the old one
// was lost: the selected one, or else the first that nobody has answered for.
// Choosing the label itself says that it is a person of its own.
func (m *model) joinFresh() {
	b := m.board()
	root := ""
	for _, label := range m.state.Fresh {
		label = protocol.Label(label)
		if b.notes.Root(label) != label || b.index(label) < 0 || m.apart[label] {
			continue
		}
		if root == "" || label == m.selected {
			root = label
		}
	}
	if root == "" {
		m.say("no label of a new connection is left to join", roleDim)
		return
	}
	from := b.name(root)
	m.choose(pick{
		prompt: func(name string) string {
			if name == from {
				return from + " is new, a person of its own?"
			}
			return from + " came after the reconnection: is it " + name + "?"
		},
		do: func(m *model, into string) tea.Cmd {
			if into == root {
				if m.apart == nil {
					m.apart = map[string]bool{}
				}
				m.apart[root] = true
				m.say(from+" stays a person of its own", rolePlain)
				return nil
			}
			if m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Merge(root, into) }) {
				m.say("joined "+from+" with "+m.board().name(into)+", u undoes it", rolePlain)
			}
			return nil
		},
	}, b.before(root, m.state.Fresh))
}

// before proposes who a new label may be: whoever had the same label before
// it, else the first person who was there already.
func (b *board) before(root string, fresh []string) string {
	if i := strings.LastIndexByte(root, '#'); i > 0 {
		if same := b.notes.Root(root[:i]); b.index(same) >= 0 {
			return same
		}
	}
	known := map[string]bool{}
	for _, label := range fresh {
		known[protocol.Label(label)] = true
	}
	for _, p := range b.people {
		if !known[p.root] {
			return p.root
		}
	}
	return root
}
