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

// runAsync runs do, which may block, on a goroutine of Bubble Tea, unless the one of the
// same name still runs. Then done is called on the goroutine of the screen, unless it is nil, and
// the text or the error is shown. doing is shown meanwhile; "" = nothing to say.
func (m *model) runAsync(name, doing string, do func() (text string, err error), done func(err error)) (started bool) {
	if m.running[name] {
		return false
	}
	m.running[name] = true
	if doing != "" {
		m.notify(doing, canvas.Dim)
	}
	m.start(func() tea.Msg {
		text, err := do()
		return resultMsg(func() {
			delete(m.running, name)
			if done != nil {
				done(err)
			}
			m.result(text, err)
		})
	})
	return true
}

// result shows what came of a command, and quits if that was waited for.
func (m *model) result(text string, err error) {
	switch {
	case err != nil:
		m.quitWaits = false // the error is to be seen
		m.notify(display.ErrorText(err, m.glyphs), canvas.Bad)
	case text != "":
		m.notify(text, canvas.Good)
	}
	if m.quitWaits {
		m.quit()
	}
}

func (m *model) export() {
	a, revision := m.annotations.Load()
	m.runAsync("export", "exporting", func() (string, error) { return m.o.Export(a) }, func(err error) {
		if err == nil {
			m.annotations.MarkSaved(a, revision)
		}
	})
}

func (m *model) record() {
	doing := ""
	if m.state.Recording != nil && m.state.Recording.Stopped == "" && !m.state.Finished() {
		doing = "stopping the recording"
	}
	m.runAsync("record", doing, m.o.Record, func(error) { m.refresh() })
}

// maxClipboard is how much is sent to a terminal's clipboard at most; some
// accept less than 100 kB after base64.
const maxClipboard = 48 << 10

// copyText sends text to the terminal's clipboard. what says what it is, instead
// what else can be done. No terminal reports whether it accepted that.
func (m *model) copyText(text, what, instead string) {
	switch {
	case text == "":
		m.notify("there is nothing to copy", canvas.Dim)
		return
	case len(text) > maxClipboard:
		m.notify(fmt.Sprintf("%s are too much for a clipboard: %s", display.Bytes(int64(len(text))), instead), canvas.Warn)
		return
	case m.theme.Plain():
		m.notify("this terminal (TERM=dumb) has no clipboard: "+instead, canvas.Warn)
		return
	}
	m.notify(fmt.Sprintf("%s sent to the terminal's clipboard (OSC 52, not every terminal takes it; %s)", what, instead), canvas.Good)
	m.start(func() tea.Msg {
		// One write, so that it cannot split a frame of the screen.
		if _, err := io.WriteString(m.o.Output, clipboardSequence(text)); err != nil {
			return resultMsg(func() { m.result("", fmt.Errorf("the terminal cannot be written to: %w", err)) })
		}
		return nil
	})
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
