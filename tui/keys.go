package tui

import (
	tea "github.com/charmbracelet/bubbletea"
)

// binding is one thing that a key does. The table below is the only place
// that knows keys: Update, the line of keys and the help all read it.
type binding struct {
	keys   []string // as Bubble Tea spells them
	shown  string   // as people do; "" with hint "" = not in the help
	ascii  string   // the same, when shown has glyphs beyond ASCII
	hint   string   // a word for the line of keys; "" = only in the help
	help   string
	short  string // help where there is little room; "" = hint, or help
	do     func(*model) tea.Cmd
	on     view               // where the key means this
	digits bool               // the keys are digits, each selects a lane
	needs  func(Options) bool // nil = always there
}

// view is what fills the screen.
type view uint8

const (
	onTimeline view = iota // the timeline and the stage
	onWire
	anywhere
)

func newBindings() []binding {
	player := func(o Options) bool { return o.Player != nil }
	wire := func(o Options) bool { return o.Wire != nil }
	return []binding{
		{keys: []string{"q", "Q"}, shown: "q", hint: "leave", help: "leave", on: anywhere, do: (*model).leave},
		{keys: []string{"ctrl+c"}, shown: "ctrl+c", help: "interrupt", on: anywhere, do: (*model).interrupt},
		{keys: []string{"?", "h", "f1"}, shown: "?", hint: "help", help: "this help", on: anywhere, do: act((*model).turnHelp)},
		{keys: []string{"esc"}, shown: "esc", help: "back, select nobody", short: "back", do: act((*model).back)},
		{keys: []string{" "}, shown: "space", hint: "freeze", help: "freeze the view", do: act((*model).toggleFreeze)},
		{keys: []string{"p"}, shown: "p", hint: "pause", help: "pause, play", short: "pause", needs: player, do: act(func(m *model) { m.o.Player.TogglePause() })},
		{keys: []string{","}, shown: ", .", help: "10 s back, forth", short: "seek", needs: player, do: seekBy(-10)},
		{keys: []string{"."}, needs: player, do: seekBy(10)},
		{keys: []string{"<"}, shown: "< >", help: "slower, faster", short: "speed", needs: player, do: act(func(m *model) { m.o.Player.Faster(-1) })},
		{keys: []string{">"}, needs: player, do: act(func(m *model) { m.o.Player.Faster(1) })},
		{keys: []string{"left"}, shown: "← →", ascii: "left right", hint: "scroll", help: "scroll", do: scrollBy(-0.1)},
		{keys: []string{"right"}, do: scrollBy(0.1)},
		{keys: []string{"shift+left", "pgup", "ctrl+left"}, shown: "shift ← →", ascii: "shift l r", help: "scroll a page", short: "page", do: scrollBy(-0.9)},
		{keys: []string{"shift+right", "pgdown", "ctrl+right"}, do: scrollBy(0.9)},
		{keys: []string{"home", "g"}, shown: "home", help: "to the start", short: "start", do: act((*model).toStart)},
		{keys: []string{"end", "G"}, shown: "end", help: "to the present", short: "present", do: act(func(m *model) { m.view.back = false })},
		{keys: []string{"+", "="}, shown: "+ -", hint: "zoom", help: "zoom in, out", do: zoomBy(-1)},
		{keys: []string{"-", "_"}, do: zoomBy(1)},
		{keys: []string{"up", "k"}, shown: "↑ ↓", ascii: "up down", help: "select a lane", short: "lane", do: act(func(m *model) { m.selectBy(-1) })},
		{keys: []string{"down", "j"}, do: act(func(m *model) { m.selectBy(1) })},
		{keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, shown: "1-9", help: "select that lane", short: "lane", digits: true},
		{keys: []string{"enter"}, shown: "enter", help: "its newest turn", short: "turn", do: act((*model).tellNewest)},
		{keys: []string{"r"}, shown: "r", hint: "name", help: "name a person", short: "name", do: withLane("name", (*model).rename)},
		{keys: []string{"m"}, shown: "m", help: "merge two lanes", short: "merge", do: withLane("merge", (*model).merge)},
		{keys: []string{"J"}, shown: "J", help: "join a new label", short: "join", do: act((*model).joinFresh)},
		{keys: []string{"u"}, shown: "u", help: "undo", do: act((*model).undo)},
		{keys: []string{"x"}, shown: "x", help: "mute a lane", short: "mute", do: withLane("mute", (*model).toggleMute)},
		{keys: []string{"o"}, shown: "o", help: "one lane only", short: "solo", do: withLane("only", (*model).toggleSolo)},
		{keys: []string{"s"}, shown: "s", help: "sort by talk time", short: "sort", do: act(func(m *model) { m.byTalk = !m.byTalk })},
		{keys: []string{"f"}, shown: "f", hint: "stage", help: "presenter view", short: "stage", do: act(func(m *model) { m.stage = !m.stage })},
		{keys: []string{"b"}, shown: "b", hint: "mark", help: "set a bookmark", short: "mark", do: act((*model).bookmark)},
		{keys: []string{"["}, shown: "[ ]", help: "to bookmarks", short: "marks", do: act(func(m *model) { m.jump(-1) })},
		{keys: []string{"]"}, do: act(func(m *model) { m.jump(1) })},
		{keys: []string{"B"}, shown: "B", help: "remove that bookmark", short: "unmark", do: act((*model).unmark)},
		{keys: []string{"e"}, shown: "e", hint: "export", help: "export", needs: func(o Options) bool { return o.Export != nil }, do: (*model).export},
		{keys: []string{"w"}, shown: "w", hint: "wire", help: "the wire", short: "wire", needs: wire, do: act((*model).openWire)},

		{keys: []string{"w"}, shown: "w", hint: "timeline", help: "the timeline", on: onWire, do: act((*model).closeWire)},
		{keys: []string{"esc"}, shown: "esc", help: "back", on: onWire, do: act((*model).wireBack)},
		{keys: []string{" "}, shown: "space", hint: "pause", help: "pause the view", short: "pause", on: onWire, do: act((*model).toggleWirePause)},
		{keys: []string{"enter"}, shown: "enter", hint: "raw", help: "raw JSON, and back", short: "raw", on: onWire, do: act((*model).toggleWireRaw)},
		{keys: []string{"up", "k"}, shown: "↑ ↓", ascii: "up down", help: "select a message", short: "select", on: onWire, do: wireBy(-1, false)},
		{keys: []string{"down", "j"}, on: onWire, do: wireBy(1, false)},
		{keys: []string{"pgup", "shift+left"}, shown: "pgup pgdn", help: "a page up, down", short: "page", on: onWire, do: wireBy(-1, true)},
		{keys: []string{"pgdown", "shift+right"}, on: onWire, do: wireBy(1, true)},
		{keys: []string{"home", "g"}, shown: "home end", help: "oldest, newest", short: "ends", on: onWire, do: act(func(m *model) { m.wire.toEnd(m.wireRows(), -1) })},
		{keys: []string{"end", "G"}, on: onWire, do: act(func(m *model) { m.wire.toEnd(m.wireRows(), 1) })},
		{keys: []string{"/"}, shown: "/", hint: "filter", help: "filter by text", short: "filter", on: onWire, do: act((*model).askWireFilter)},
		{keys: []string{"t"}, shown: "t", hint: "kind", help: "filter by kind", short: "kind", on: onWire, do: act((*model).turnWireKind)},
		{keys: []string{"d"}, shown: "d", help: "filter by direction", short: "way", on: onWire, do: act((*model).turnWireWay)},
		{keys: []string{"u"}, shown: "u", hint: "unfold", help: "unfold runs of chunks", short: "unfold", on: onWire, do: act((*model).toggleWireFold)},
		{keys: []string{"c"}, shown: "c", hint: "copy", help: "copy as NDJSON", short: "copy", on: onWire, do: (*model).copyWire},
		{keys: []string{"C"}, shown: "C", help: "all of it, to a file", short: "file", on: onWire, needs: func(o Options) bool { return o.SaveWire != nil }, do: (*model).saveWire},

		{keys: []string{"M"}, shown: "M", help: "mouse off, to copy", short: "mouse", on: anywhere, do: (*model).toggleMouse},
		{keys: []string{"ctrl+z"}, shown: "ctrl+z", help: "suspend", on: anywhere, do: func(*model) tea.Cmd { return tea.Suspend }},
	}
}

// here is what fills the screen now.
func (m *model) here() view {
	if m.wire != nil {
		return onWire
	}
	return onTimeline
}

// bound is what a key does here.
func (m *model) bound(key string) *binding {
	if b := m.byKey[m.here()][key]; b != nil {
		return b
	}
	return m.byKey[anywhere][key]
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

func seekBy(seconds float64) func(*model) tea.Cmd {
	return act(func(m *model) {
		m.o.Player.Seek(m.state.Heard + seconds)
		m.refresh() // keys come faster than ticks: the next one starts from here
	})
}

func zoomBy(by int) func(*model) tea.Cmd {
	return act(func(m *model) { w := m.window(); m.view.zoomBy(w.cells, w.heard, by) })
}

// turnHelp shows the help, its next page where there is one, or puts it away.
func (m *model) turnHelp() {
	m.help++
	if m.help > m.helpPages() {
		m.help = 0
	}
}

// back leaves what lies over the timeline, one thing after the other.
func (m *model) back() {
	switch {
	case m.help > 0:
		m.help = 0
	case m.stage:
		m.stage = false
	case m.notice != "":
		m.notice = ""
	default:
		m.selected = ""
	}
}
