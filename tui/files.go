package tui

import (
	"fmt"
	"io"
	"os"

	"github.com/aymanbagabas/go-osc52/v2"
	tea "github.com/charmbracelet/bubbletea"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// What the keys write: exports and recordings into files, and text into the
// terminal's clipboard. Goroutines of Bubble Tea's write, and answer with a message.

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

// maxClipboard is how much is sent to a terminal's clipboard at most; some
// accept less than 100 kB after base64.
const maxClipboard = 48 << 10

// copyText sends text to the terminal's clipboard. what says what it is, instead
// what else can be done. No terminal reports whether it accepted that.
func (m *model) copyText(text, what, instead string) tea.Cmd {
	switch {
	case text == "":
		m.notify("there is nothing to copy", canvas.Dim)
		return nil
	case len(text) > maxClipboard:
		m.notify(fmt.Sprintf("%s are too much for a clipboard: %s", display.Bytes(int64(len(text))), instead), canvas.Warn)
		return nil
	case m.theme.Plain():
		m.notify("this terminal (TERM=dumb) has no clipboard: "+instead, canvas.Warn)
		return nil
	}
	m.notify(fmt.Sprintf("%s sent to the terminal's clipboard (OSC 52, not every terminal takes it; %s)", what, instead), canvas.Good)
	out := m.o.Output
	return func() tea.Msg {
		if out == nil {
			out = os.Stdout
		}
		// One write, so that it cannot split a frame of the screen.
		if _, err := io.WriteString(out, clipboardSequence(text)); err != nil {
			return wireSavedMsg{err: fmt.Errorf("the terminal cannot be written to: %w", err)}
		}
		return nil
	}
}

// clipboardSequence puts text into the terminal's clipboard. A tmux or screen in
// between has to pass it on.
func clipboardSequence(text string) string {
	seq := osc52.New(text)
	switch {
	case os.Getenv("TMUX") != "":
		// Both: for tmux itself (set-clipboard), and to pass on.
		return seq.String() + seq.Tmux().String()
	case os.Getenv("STY") != "":
		seq = seq.Screen()
	}
	return seq.String()
}
