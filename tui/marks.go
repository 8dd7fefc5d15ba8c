package tui

import (
	"errors"
	"fmt"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
)

// bookmark asks for the note of a bookmark: at the present, or scrolled back in
// the middle of what is seen. The place is that of the key, not of the end of
// the note.
func (m *model) bookmark() {
	w := m.window()
	at := m.board().Heard
	if !w.follow {
		at = min(max(w.at(0)+w.span/2, 0), at)
	}
	m.ask(entry{
		prompt: "bookmark " + clock(at) + ", note:", role: roleBrand, limit: protocol.MaxNoteRunes,
		done: func(m *model, note string) tea.Cmd {
			if m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Bookmark(at, note) }) {
				m.mark = protocol.Round1ms(at)
				m.say(fmt.Sprintf("%s %s  %s", m.glyphs.mark1, clock(at), Clean(note)), roleBrand)
			}
			return nil
		},
	})
}

// jump goes to the next (+1) or the previous (-1) bookmark. It counts from the
// bookmark that was reached last, while the view is still there; else from the
// middle of what is seen.
func (m *model) jump(by int) {
	b := m.board()
	if len(b.marks) == 0 {
		m.say("no bookmarks yet: b sets one", roleDim)
		return
	}
	w := m.window()
	from := w.at(0) + w.span/2
	if w.follow && b.Playback == nil {
		from = b.Heard
	}
	if m.jumped == (jumped{m.mark, m.view}) {
		from = m.mark
	}
	// The first bookmark after from, and the last one before it.
	next := slices.IndexFunc(b.marks, func(k protocol.Bookmark) bool { return k.At > from })
	if next < 0 {
		next = len(b.marks)
	}
	i := next
	if by < 0 {
		i = next - 1
		for i >= 0 && b.marks[i].At >= from {
			i--
		}
	}
	if i < 0 || i >= len(b.marks) {
		m.say(map[bool]string{true: "no bookmark after this", false: "no bookmark before this"}[by > 0], roleDim)
		return
	}
	mark := b.marks[i]
	m.mark = mark.At
	m.lookAt(mark.At)
	m.jumped = jumped{mark.At, m.view}
	m.say(fmt.Sprintf("%s %s  %s  (%d of %d, B removes it)", m.glyphs.mark1, clock(mark.At), Clean(mark.Note), i+1, len(b.marks)), roleBrand)
	if m.o.Player != nil {
		m.o.Player.Seek(mark.At)
	}
}

// lookAt moves the window so that a position is in its middle.
func (m *model) lookAt(at float64) {
	w := m.window()
	if m.view.chosen && m.view.zoom >= wholeSession {
		return // everything is seen
	}
	m.view.to(w, at+w.span/2)
}

// unmark removes the bookmark that was set or reached last.
func (m *model) unmark() {
	i := slices.IndexFunc(m.board().marks, func(k protocol.Bookmark) bool { return k.At == m.mark })
	if i < 0 {
		m.say("[ and ] choose the bookmark to remove", roleDim)
		return
	}
	at := m.mark
	m.update(func(a protocol.Annotations) (protocol.Annotations, error) { return a.Unbookmark(at), nil })
	m.say("removed the bookmark at "+clock(at)+", u brings it back", rolePlain)
}

// jumped is where the last jump to a bookmark led.
type jumped struct {
	at   float64
	view viewport
}

// exportedMsg is the answer of Options.Export.
type exportedMsg struct {
	text     string
	err      error
	revision int64
}

// export asks for the files, on a goroutine of Bubble Tea's.
func (m *model) export() tea.Cmd {
	if m.exporting {
		return nil
	}
	m.exporting = true
	m.say("exporting", roleDim)
	a, revision := m.store.Load()
	do := m.o.Export
	return func() tea.Msg {
		text, err := do(a)
		return exportedMsg{text, err, revision}
	}
}

func (m *model) exported(msg exportedMsg) {
	m.exporting = false
	if msg.err != nil {
		text := msg.err.Error()
		var h interface{ Hint() string }
		if errors.As(msg.err, &h) && h.Hint() != "" {
			text += " " + m.glyphs.dot + " " + h.Hint()
		}
		m.say(text, roleBad)
		return
	}
	m.store.MarkSaved(msg.revision)
	m.say(msg.text, roleGood)
}
