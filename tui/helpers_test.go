package tui

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// testModel is a model that shows one state, in colour. Its clock stands still.
func testModel(s display.State, w, h int) *model {
	m := newModel(Options{Controls: display.Controls{Snapshot: func() display.State { return s }}}, canvas.NewTheme(termenv.TrueColor, true, false), canvas.NewGlyphs(false))
	m.now = func() time.Time { return time.Unix(1_000_000, 0) }
	m.refresh()
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return m
}

// later gives the model another state at its next tick. The clock advances as
// far as the position.
func (m *model) later(s display.State) {
	at := m.now().Add(time.Duration((s.Position - m.state.Position) * float64(time.Second)))
	m.now = func() time.Time { return at }
	m.o.Snapshot = func() display.State { return s }
	m.Update(tickMsg{})
}

// press sends keys, each a name as Bubble Tea spells it, or the characters of a text, and
// returns the command of the last one.
func press(m *model, keys ...string) (last tea.Cmd) {
	for _, k := range keys {
		switch typ, named := keyNames[k]; {
		case typ == tea.KeySpace:
			_, last = m.Update(tea.KeyMsg{Type: typ, Runes: []rune{' '}})
		case named:
			_, last = m.Update(tea.KeyMsg{Type: typ})
		default:
			for _, r := range k {
				_, last = m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
			}
		}
	}
	return last
}

// runCommand runs a command, or those of a batch, and returns its message.
func runCommand(cmd tea.Cmd) tea.Msg {
	if cmd == nil {
		return nil
	}
	msg := cmd()
	if batch, ok := msg.(tea.BatchMsg); ok {
		msg = nil
		for _, c := range batch {
			if m := runCommand(c); m != nil {
				msg = m
			}
		}
	}
	return msg
}

func screenRows(m *model) []string { return strings.Split(ansi.Strip(m.View()), "\n") }

// screenHas is for what the screen has to say after some keys.
func screenHas(t *testing.T, m *model, want string, keys ...string) {
	t.Helper()
	press(m, keys...)
	if v := ansi.Strip(m.View()); !strings.Contains(v, want) {
		t.Errorf("the screen does not say %q:\n%s", want, v)
	}
}

// screenHasNot is for what it must not say after them.
func screenHasNot(t *testing.T, m *model, not string, keys ...string) {
	t.Helper()
	press(m, keys...)
	if v := ansi.Strip(m.View()); strings.Contains(v, not) {
		t.Errorf("the screen says %q:\n%s", not, v)
	}
}

// helpText is what the pages of the help have, each of which says how to go on.
func helpText(t *testing.T, m *model) (text string, pages int) {
	t.Helper()
	for press(m, "?"); m.help > 0; press(m, "?") {
		text += ansi.Strip(m.View())
		pages++
	}
	if strings.Count(text, ", ? next, ") != pages-1 || strings.Count(text, ", ? closes") != 1 {
		t.Errorf("the pages of the help say how to go on:\n%s", text)
	}
	return text, pages
}

func noExport(protocol.Annotations) (string, error) { return "", nil }
