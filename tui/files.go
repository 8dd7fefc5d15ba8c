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
// terminal's clipboard.

// asyncMsg is the result of runAsync.
type asyncMsg struct {
	text string // one line; "" = nothing to say
	err  error
	done func(err error) // nil = nothing to do
}

// runAsync runs do, which may block, on a goroutine of Bubble Tea. Then done is
// called on that of the screen, and the text or the error is shown.
func (m *model) runAsync(do func() (text string, err error), done func(err error)) tea.Cmd {
	m.running++
	return func() tea.Msg {
		text, err := do()
		return asyncMsg{text, err, done}
	}
}

func (m *model) asyncDone(msg asyncMsg) tea.Cmd {
	m.running--
	if msg.done != nil {
		msg.done(msg.err)
	}
	switch {
	case msg.err != nil:
		m.quitWaits = false // the error is to be seen
		m.notify(display.ErrorText(msg.err, m.glyphs), canvas.Bad)
	case msg.text != "":
		m.notify(msg.text, canvas.Good)
	}
	if m.quitWaits {
		return m.quit()
	}
	return nil
}

func (m *model) export() tea.Cmd {
	if m.exporting {
		return nil
	}
	m.exporting = true
	m.notify("exporting", canvas.Dim)
	a, revision := m.annotations.Load()
	return m.runAsync(func() (string, error) { return m.o.Export(a) }, func(err error) {
		m.exporting = false
		if err == nil {
			m.annotations.MarkSaved(revision)
		}
	})
}

// record starts or stops a recording.
func (m *model) record() tea.Cmd {
	if m.recording {
		return nil
	}
	m.recording = true
	if m.state.Recording != nil && m.state.Recording.Stopped == "" && !m.state.Finished() {
		m.notify("stopping the recording", canvas.Dim)
	}
	return m.runAsync(m.o.Record, func(error) {
		m.recording = false
		m.refresh()
	})
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
	return m.runAsync(func() (string, error) {
		// One write, so that it cannot split a frame of the screen.
		if _, err := io.WriteString(m.o.Output, clipboardSequence(text)); err != nil {
			return "", fmt.Errorf("the terminal cannot be written to: %w", err)
		}
		return "", nil
	}, nil)
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
