package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// What the keys write into files: exports and recordings. The files are written on
// goroutines of Bubble Tea's, which answer with a message.

// exportedMsg is the result of Options.Export.
type exportedMsg struct {
	text     string
	err      error
	revision int64
}

// export writes the files on a goroutine of Bubble Tea's.
func (m *model) export() tea.Cmd {
	if m.exporting {
		return nil
	}
	m.exporting = true
	m.notify("exporting", canvas.Dim)
	a, revision := m.annotations.Load()
	export := m.o.Export
	return func() tea.Msg {
		text, err := export(a)
		return exportedMsg{text, err, revision}
	}
}

func (m *model) exported(msg exportedMsg) {
	m.exporting = false
	if msg.err != nil {
		m.notify(display.ErrorText(msg.err, m.glyphs), canvas.Bad)
		return
	}
	m.annotations.MarkSaved(msg.revision)
	m.notify(msg.text, canvas.Good)
}

// recordedMsg is the result of Options.Record.
type recordedMsg struct {
	text string
	err  error
}

// record starts or stops a recording on a goroutine of Bubble Tea's.
func (m *model) record() tea.Cmd {
	if m.recording {
		return nil
	}
	m.recording = true
	if m.state.Recording != nil && m.state.Recording.Stopped == "" {
		m.notify("stopping the recording", canvas.Dim)
	}
	toggle := m.o.Record
	return func() tea.Msg {
		text, err := toggle()
		return recordedMsg{text, err}
	}
}

func (m *model) recorded(msg recordedMsg) {
	m.recording = false
	if msg.err != nil {
		m.notify(display.ErrorText(msg.err, m.glyphs), canvas.Bad)
		return
	}
	m.notify(msg.text, canvas.Good)
	m.refresh()
}
