package tui

import (
	tea "github.com/charmbracelet/bubbletea"
)

// binding is one thing that a key does. The table below is the only place
// that knows keys: Update, the line of keys and the help all read it.
type binding struct {
	keys  []string // as Bubble Tea spells them
	shown string   // as people do; "" with hint "" = not in the help
	ascii string   // the same, when shown has glyphs beyond ASCII
	hint  string   // a word for the line of keys; "" = only in the help
	help  string
	short string // help where there is little room; "" = hint, or help
	do    func(*model) tea.Cmd
}

func newBindings() []binding {
	return []binding{
		{keys: []string{"q", "Q"}, shown: "q", hint: "leave", help: "leave", do: (*model).leave},
		{keys: []string{"ctrl+c"}, shown: "ctrl+c", help: "interrupt", do: (*model).interrupt},
		{keys: []string{"?", "h", "f1"}, shown: "?", hint: "help", help: "this help", do: act(func(m *model) { m.help = !m.help })},
		{keys: []string{"esc"}, do: act(func(m *model) { m.help = false })},
		{keys: []string{" "}, shown: "space", hint: "freeze", help: "freeze the view", do: act((*model).toggleFreeze)},
		{keys: []string{"left"}, shown: "← →", ascii: "left right", hint: "scroll", help: "scroll", do: scrollBy(-0.1)},
		{keys: []string{"right"}, do: scrollBy(0.1)},
		{keys: []string{"shift+left", "pgup", "ctrl+left"}, shown: "shift ← →", ascii: "shift l r", help: "scroll a page", short: "page", do: scrollBy(-0.9)},
		{keys: []string{"shift+right", "pgdown", "ctrl+right"}, do: scrollBy(0.9)},
		{keys: []string{"home", "g"}, shown: "home", help: "to the start", short: "start", do: act((*model).toStart)},
		{keys: []string{"end", "G"}, shown: "end", help: "to the present", short: "present", do: act(func(m *model) { m.view.back = false })},
		{keys: []string{"+", "="}, shown: "+ -", hint: "zoom", help: "zoom in, out", do: zoomBy(-1)},
		{keys: []string{"-", "_"}, do: zoomBy(1)},
		{keys: []string{"up", "k"}, shown: "↑ ↓", ascii: "up down", help: "more speakers", short: "speakers", do: act(func(m *model) { m.view.top-- })},
		{keys: []string{"down", "j"}, do: act(func(m *model) { m.view.top++ })},
		{keys: []string{"ctrl+z"}, shown: "ctrl+z", help: "suspend", do: func(*model) tea.Cmd { return tea.Suspend }},
	}
}

// inShort is what the binding does, in a word.
func (b binding) inShort() string {
	switch {
	case b.short != "":
		return b.short
	case b.hint != "":
		return b.hint
	}
	return b.help
}

// label is how the binding's keys are written.
func (b binding) label(ascii bool) string {
	if ascii && b.ascii != "" {
		return b.ascii
	}
	return b.shown
}

func act(f func(*model)) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd { f(m); return nil }
}

func scrollBy(part float64) func(*model) tea.Cmd {
	return act(func(m *model) {
		w := m.window()
		m.view.scroll(w, part*w.span)
	})
}

func zoomBy(by int) func(*model) tea.Cmd {
	return act(func(m *model) { m.view.zoomBy(m.layout().cells(), m.shown().Heard, by) })
}
