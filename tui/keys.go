package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
	"hubbub/tui/wire"
)

// binding is one function of a key. The table in newBindings is the only
// place that knows keys: Update, the line of keys, the help and the commands by
// name read it. A Keymap replaces the keys of commands.
type binding struct {
	keys  []string // as Bubble Tea spells them
	name  string   // as a command; "" = not a command
	shown string   // how the screen shows the keys; "" = by their names
	ascii string   // the same in ASCII, where that differs
	hint  string   // one word for the line of keys; "" = only in the help
	help  string   // "" = the one before has it: it does the opposite
	short string   // help where there is little room; "" = hint, or help
	do    func(*model)
	on    screen            // where the key means this
	digit func(*model, int) // instead of do, for keys that are digits: 0 is key 1
	in    sessionKind
	needs func(Options) bool // nil = always available there
	row   bool               // in the list, about the selected row: its help has it

	view     bool   // it opens one, for which a small screen has no room
	always   bool   // also while text is typed or a question is asked
	opposite string // key of the binding after it, if that has no help; "" = none
}

// screen is what the keys apply to.
type screen uint8

const (
	timelineScreen screen = iota // the presenter view included
	wireScreen
	listScreen // the timeline with the list of turns; other keys are the timeline's
	microphoneScreen
	anyScreen
)

// sessionKind is the kind of sessions that have a binding.
type sessionKind uint8

const (
	anySession sessionKind = iota
	replays
	noReplays
)

// available reports whether the binding is there with the options.
func (b binding) available(o Options) bool {
	return (b.in == anySession || (b.in == replays) == (o.Player != nil)) && (b.needs == nil || b.needs(o))
}

func newBindings() []binding {
	return []binding{
		{keys: []string{"q", "Q"}, name: "quit", hint: "quit", help: "quit", on: anyScreen, do: (*model).quit},
		{keys: []string{"ctrl+c"}, name: "interrupt", help: "interrupt", on: anyScreen, do: (*model).interrupt, always: true},
		{keys: []string{"?", "h", "f1"}, name: "help", hint: "help", help: "this help", on: anyScreen, view: true, do: (*model).nextHelpPage},
		{keys: []string{"esc"}, name: "back", help: "back, deselect", short: "back", do: (*model).back},
		{keys: []string{" "}, name: "freeze", hint: "freeze", help: "freeze the view", in: noReplays, do: (*model).toggleFreeze},
		{keys: []string{" ", "p"}, name: "pause", hint: "pause", help: "pause, play", in: replays, do: (*model).togglePause},
		{keys: []string{","}, name: "seek back", help: "10 s back, forth", short: "seek", in: replays, do: with((*model).seekBy, -10)},
		{keys: []string{"."}, name: "seek forward", in: replays, do: with((*model).seekBy, 10)},
		{keys: []string{"<"}, name: "slower", help: "slower, faster", short: "speed", in: replays, do: with((*model).faster, -1)},
		{keys: []string{">"}, name: "faster", in: replays, do: with((*model).faster, 1)},
		{keys: []string{"t", "l"}, name: "turns", hint: "turns", help: "list of turns", view: true, do: (*model).openList},
		{keys: []string{"up", "k"}, name: "previous lane", help: "select a lane", short: "lane", do: with((*model).selectBy, -1)},
		{keys: []string{"down", "j"}, name: "next lane", do: with((*model).selectBy, 1)},
		{keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, shown: "1-9", help: "select that lane", short: "lane", digit: func(m *model, i int) { m.selectLane(m.session(), i) }},
		{keys: []string{"enter"}, name: "newest turn", help: "its newest turn", short: "turn", do: (*model).describeNewest},
		{keys: []string{"r"}, name: "name", hint: "name", help: "name a speaker", row: true, do: (*model).askName},
		{keys: []string{"V"}, name: "remember", help: "remember the voice", short: "voice", needs: func(o Options) bool { return o.Memory != nil }, row: true, do: func(m *model) { m.withLane("remember the voice of", m.askRemember) }},
		{keys: []string{"m"}, name: "merge", help: "merge two lanes", short: "merge", row: true, do: func(m *model) { m.withLane("merge", m.merge) }},
		{keys: []string{"J"}, name: "join", help: "join a new label", short: "join", do: (*model).joinNewLabel},
		{keys: []string{"u"}, name: "undo", help: "undo", row: true, do: (*model).undo},
		{keys: []string{"x"}, name: "mute", help: "mute a lane", short: "mute", row: true, do: func(m *model) { m.withLane("mute", m.toggleMute) }},
		{keys: []string{"o"}, name: "solo", help: "one lane only", short: "solo", row: true, do: func(m *model) { m.withLane("only", m.toggleSolo) }},
		{keys: []string{"s"}, name: "sort", help: "sort by talk time", short: "sort", do: (*model).toggleSort},
		{keys: []string{"left"}, name: "scroll back", hint: "scroll", help: "scroll, move cursor", do: with((*model).stepBy, -1)},
		{keys: []string{"right"}, name: "scroll forward", do: with((*model).stepBy, 1)},
		{keys: []string{"shift+left", "pgup", "ctrl+left"}, name: "page back", shown: "shift ← →", ascii: "shift l r", help: "scroll a page", short: "page", do: with((*model).scrollBy, -0.9)},
		{keys: []string{"shift+right", "pgdown", "ctrl+right"}, name: "page forward", do: with((*model).scrollBy, 0.9)},
		{keys: []string{"home", "g"}, name: "start", help: "to the start", short: "start", do: (*model).toStart},
		{keys: []string{"end", "G"}, name: "present", help: "to the present", short: "present", do: (*model).toPresent},
		{keys: []string{"+", "="}, name: "zoom in", hint: "zoom", help: "zoom in, out", do: with((*model).zoomBy, -1)},
		{keys: []string{"-", "_"}, name: "zoom out", do: with((*model).zoomBy, 1)},
		{keys: []string{"f"}, name: "presenter", hint: "presenter", help: "presenter view", view: true, do: func(m *model) { m.presenter = !m.presenter }},
		{keys: []string{"b"}, name: "bookmark", hint: "bookmark", help: "set a bookmark", row: true, do: (*model).addBookmark},
		{keys: []string{"["}, name: "previous bookmark", help: "to bookmarks", short: "bookmarks", do: with((*model).jumpToBookmark, -1)},
		{keys: []string{"]"}, name: "next bookmark", do: with((*model).jumpToBookmark, 1)},
		{keys: []string{"B"}, name: "remove bookmark", help: "remove that bookmark", short: "remove it", row: true, do: (*model).removeBookmark},
		{keys: []string{"e"}, name: "export", hint: "export", help: "export", needs: func(o Options) bool { return o.Export != nil }, do: (*model).export},
		{keys: []string{"R"}, name: "record", help: "record, stop", short: "record", needs: func(o Options) bool { return o.Record != nil }, do: (*model).record},
		{keys: []string{"i"}, name: "microphone", help: "choose the microphone", short: "microphone", needs: func(o Options) bool { return o.Microphones != nil }, view: true, do: (*model).openMicrophones},
		{keys: []string{"w"}, name: "wire", hint: "wire", help: "wire view", needs: func(o Options) bool { return o.Wire != nil }, view: true, do: (*model).openWire},

		{keys: []string{"w"}, name: "timeline", hint: "timeline", help: "the timeline", on: wireScreen, do: func(m *model) { m.wire = nil }},
		{keys: []string{"esc"}, name: "back", help: "back", on: wireScreen, do: (*model).back},
		{keys: []string{" "}, name: "pause", hint: "pause", help: "pause the view", on: wireScreen, do: (*model).toggleWirePause},
		{keys: []string{"enter"}, name: "raw", hint: "raw", help: "raw JSON, and back", on: wireScreen, do: onWire((*wire.View).ToggleRaw)},
		{keys: []string{"up", "k"}, name: "previous message", help: "select a message", short: "select", on: wireScreen, do: with((*model).wireBy, -1)},
		{keys: []string{"down", "j"}, name: "next message", on: wireScreen, do: with((*model).wireBy, 1)},
		{keys: []string{"pgup", "shift+left"}, name: "page up", shown: "pgup pgdn", help: "a page up, down", short: "page", on: wireScreen, do: with((*model).wirePages, -1)},
		{keys: []string{"pgdown", "shift+right"}, name: "page down", on: wireScreen, do: with((*model).wirePages, 1)},
		{keys: []string{"home", "g"}, name: "oldest", help: "oldest, newest", short: "ends", on: wireScreen, do: onWire((*wire.View).ToOldest)},
		{keys: []string{"end", "G"}, name: "newest", on: wireScreen, do: onWire((*wire.View).ToNewest)},
		{keys: []string{"/"}, name: "filter", hint: "filter", help: "filter by text", on: wireScreen, do: func(m *model) { m.askFilter(m.wire.Filter(), m.wire.SetFilter) }},
		{keys: []string{"t"}, name: "kind", hint: "kind", help: "filter by kind", on: wireScreen, do: onWire((*wire.View).NextKind)},
		{keys: []string{"u"}, name: "unfold", hint: "unfold", help: "unfold runs of chunks", on: wireScreen, do: onWire((*wire.View).ToggleFold)},
		{keys: []string{"c"}, name: "copy", hint: "copy", help: "copy as NDJSON", on: wireScreen, do: (*model).copyWire},
		{keys: []string{"C"}, name: "file", help: "all of it, to a file", short: "file", on: wireScreen, needs: func(o Options) bool { return o.SaveWire != nil }, do: (*model).saveWire},

		{keys: []string{"t", "l"}, name: "timeline", hint: "timeline", help: "close the list", on: listScreen, do: func(m *model) { m.list = nil }},
		{keys: []string{"esc"}, name: "back", help: "back", on: listScreen, do: (*model).back},
		{keys: []string{"up", "k"}, name: "previous turn", help: "select a turn", short: "select", on: listScreen, do: with((*model).listBy, -1)},
		{keys: []string{"down", "j"}, name: "next turn", on: listScreen, do: with((*model).listBy, 1)},
		{keys: []string{"pgup"}, name: "page up", shown: "pgup pgdn", help: "a page up, down", short: "page", on: listScreen, do: with((*model).listPages, -1)},
		{keys: []string{"pgdown"}, name: "page down", on: listScreen, do: with((*model).listPages, 1)},
		{keys: []string{"home", "g"}, name: "oldest turn", help: "oldest, newest", short: "ends", on: listScreen, do: (*model).toOldestTurn},
		{keys: []string{"end", "G"}, name: "newest turn", on: listScreen, do: (*model).toNewestTurn},
		{keys: []string{"enter"}, name: "jump", hint: "jump", help: "to that time", on: listScreen, do: (*model).jumpToRow},
		{keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, shown: "1-9", hint: "only", help: "that lane only", on: listScreen, digit: (*model).onlyTurnsOf},
		{keys: []string{"/"}, name: "filter", hint: "filter", help: "filter by text", on: listScreen, do: (*model).askListFilter},
		{keys: []string{"y"}, name: "copy", hint: "copy", help: "copy row, or all", on: listScreen, do: (*model).copyRows},
		{keys: []string{">"}, name: "move", hint: "move", help: "move the turn", on: listScreen, do: (*model).moveTurn},

		{keys: []string{"enter"}, name: "use", hint: "use", help: "use that microphone", on: microphoneScreen, do: (*model).useMicrophone},
		{keys: []string{"up", "k"}, name: "previous microphone", hint: "select", help: "select a microphone", on: microphoneScreen, do: with((*model).microphoneBy, -1)},
		{keys: []string{"down", "j"}, name: "next microphone", on: microphoneScreen, do: with((*model).microphoneBy, 1)},
		{keys: []string{"esc", "i"}, name: "back", hint: "back", help: "back", on: microphoneScreen, do: (*model).back},

		{keys: []string{":"}, name: "command", help: "command, or time", short: "command", on: anyScreen, do: (*model).askCommand},
		{keys: []string{"M"}, name: "mouse", help: "mouse off, to copy", short: "mouse", on: anyScreen, do: (*model).toggleMouse},
		{keys: []string{"ctrl+z"}, name: "suspend", help: "suspend", on: anyScreen, needs: func(o Options) bool { return !o.NoSuspend }, do: (*model).suspend, always: true},
	}
}

func (m *model) bindKeys() {
	m.bindings = slices.DeleteFunc(m.o.Keys.bindings(), func(b binding) bool { return !b.available(m.o) })
}

// screen is what the keys apply to now.
func (m *model) screen() screen {
	if m.microphones != nil {
		return microphoneScreen
	}
	if m.wire != nil {
		return wireScreen
	}
	if m.list != nil && !m.presenter {
		return listScreen
	}
	return timelineScreen
}

// active are the bindings that apply now. Of several with the same key or name, the
// first counts.
func (m *model) active() (all []*binding) {
	screens := []screen{m.screen(), anyScreen}
	if m.screen() == listScreen {
		screens = append(screens, timelineScreen)
	}
	for _, on := range screens {
		for i := range m.bindings {
			if b := &m.bindings[i]; b.on == on {
				all = append(all, b)
			}
		}
	}
	return all
}

// bound is the binding of a key on this screen, or nil.
func (m *model) bound(key string) *binding {
	for _, b := range m.active() {
		if slices.Contains(b.keys, key) {
			return b
		}
	}
	return nil
}

// shortHelp is what the binding does, in one word.
func (b binding) shortHelp() string {
	return cmp.Or(b.short, b.hint, b.help)
}

// keyText is how the binding's keys, of which there are some, are shown.
func (b binding) keyText(ascii bool) string {
	switch {
	case ascii && b.ascii != "":
		return b.ascii
	case b.shown != "":
		return b.shown
	case b.opposite != "":
		return shownKey(b.keys[0], ascii) + " " + shownKey(b.opposite, ascii)
	}
	return shownKey(b.keys[0], ascii)
}

// key handles a key message. Keys in quick succession can arrive as one message
// with several runes.
func (m *model) key(msg tea.KeyMsg) {
	b := m.bound(msg.String())
	// Bubble Tea makes keys of the answer of the terminal to the question for its background:
	// alt+], 11;rgb:ffff/ffff/ffff, and alt+\ or ctrl+g. Nobody types the second one at once.
	answer := canvas.Answer(strings.TrimPrefix(string(msg.Runes), "]"))
	if answer {
		m.theme = canvas.DetectTheme(m.o.Output, m.o.Background)
	}
	if answer || b == nil && msg.String() == "alt+]" {
		m.answerAt = m.now()
		return
	}
	if m.now().Sub(m.answerAt) < answerTime {
		if end := msg.String(); end == `alt+\` || end == "ctrl+g" {
			m.answerAt = time.Time{}
		}
		return
	}
	always := b != nil && b.always && len(msg.Runes) == 0 // else it is a character
	if m.input != nil && !always {
		m.inputKey(msg)
		return
	}
	if msg.Paste {
		if m.choice != nil && m.choice.text {
			m.chooseWithText(string(msg.Runes))
		}
		return
	}
	if msg.Alt && b == nil { // esc and another key, read at once
		msg.Alt = false
		m.key(tea.KeyMsg{Type: tea.KeyEsc})
		m.key(msg)
		return
	}
	if msg.Type != tea.KeyRunes || msg.Alt {
		m.press(msg.String(), always)
		return
	}
	for i, r := range msg.Runes {
		if m.input != nil { // the previous key began a text input: the rest is text
			m.inputKey(tea.KeyMsg{Type: tea.KeyRunes, Runes: msg.Runes[i:]})
			break
		}
		m.press(string(r), always)
	}
}

// press is for a key that is no text: of the prompt, or of a binding.
func (m *model) press(name string, always bool) {
	if m.question != nil && !always && m.questionKey(name) {
		return
	}
	if m.choice != nil && !always {
		m.choiceKey(name)
	} else if b := m.bound(name); b != nil {
		m.act(b, name)
	}
}

// act does what a binding does, for a key or by name.
func (m *model) act(b *binding, key string) {
	if b.name != "quit" && b.name != "command" {
		m.quitAsked = false
	}
	m.quitWaits = false   // quit sets it again
	if b.name != "back" { // which closes one of them, and nothing else then
		m.notice = ""
		if b.name != "help" { // which would cover the answer
			m.help = 0
		}
	}
	switch {
	case b.view && m.layout().small:
		m.notify("no room for this view", canvas.Warn)
	case b.digit != nil:
		b.digit(m, int(key[0]-'1'))
	default:
		b.do(m)
	}
}

// with is a method with its argument.
func with[T any](f func(*model, T), arg T) func(*model) {
	return func(m *model) { f(m, arg) }
}

func (m *model) scrollBy(part float64) {
	w := m.window()
	m.view.scroll(w, part*w.span)
}

// zoomBy zooms around the cursor, if it is in the window; else around the present where the view
// follows that, or the middle.
func (m *model) zoomBy(by int) {
	w := m.window()
	around := w.right
	if _, shown := m.cursorColumn(w); shown {
		around = m.cursor
	} else if !w.follow {
		around -= w.span / 2
	}
	m.view.zoomBy(w, by, around)
}

// still reports whether the timeline stands still: frozen, or a paused replay.
func (m *model) still() bool {
	return m.frozen != nil || m.state.Playback != nil && m.state.Playback.Paused
}

// cursorColumn is the column of the cursor, and whether it is shown.
func (m *model) cursorColumn(w window) (column int, shown bool) {
	column = w.column(m.cursor)
	return column, m.still() && m.cursor >= 0 && column >= 0 && column < w.cells
}

// stepBy scrolls a tenth of the window, or moves the cursor by a cell while the
// timeline stands still.
func (m *model) stepBy(by int) {
	w := m.window()
	if !m.still() {
		m.view.scroll(w, 0.1*float64(by)*w.span)
		return
	}
	at := m.cursor
	if _, shown := m.cursorColumn(w); at < 0 && w.follow {
		at = w.position
	} else if !shown {
		at = w.middle()
	}
	m.cursor = min(max(at+float64(by)*w.cellDur, 0), w.position)
	if _, shown := m.cursorColumn(w); !shown {
		m.view.scroll(w, 0.5*float64(by)*w.span)
	}
}

func (m *model) togglePause() {
	m.cursor = -1
	if m.still() { // a view that moves again follows, as one that was frozen
		m.view.scrolled = false
	}
	m.o.Player.TogglePause()
}

func (m *model) toPresent() { m.view.scrolled, m.cursor = false, -1 }

func (m *model) seekBy(seconds float64) {
	m.cursor = -1
	m.o.Player.Seek(m.state.Position + seconds)
	m.refresh() // the next key may come before the next tick, and starts from here
}

func (m *model) faster(steps int) {
	m.o.Player.Faster(steps)
	m.refresh()
	if p := m.state.Playback; p != nil {
		m.notify(fmt.Sprintf("speed %gx", p.Speed), canvas.Brand)
	}
}

// nextHelpPage opens the help, turns its page, or closes it.
func (m *model) nextHelpPage() {
	m.help++
	if m.help > len(m.helpPages()) {
		m.help = 0
	}
}

// back closes what is over the timeline, one layer at a time.
func (m *model) back() {
	switch on := m.screen(); {
	case m.help > 0:
		m.help = 0
	case on == microphoneScreen:
		m.closeMicrophones()
	case on == wireScreen && m.wire.CloseRaw():
	case on == timelineScreen && m.presenter:
		m.presenter = false
	case m.notice != "":
		m.notice = ""
	case on == wireScreen:
		if !m.wire.Reset() {
			m.wire = nil
		}
	case on == listScreen:
		if !display.Reset(&m.list.Cursor, &m.list.filter) {
			m.list = nil
		}
	default:
		m.selected = ""
	}
}

func (m *model) toggleFreeze() {
	m.cursor, m.presenter = -1, false // which always shows the present
	if m.frozen != nil {
		m.frozen = nil
		m.view.scrolled = false
		return
	}
	s := m.state
	m.frozen = &s
}

func (m *model) toStart() {
	w := m.window()
	m.view.scroll(w, -w.position)
}

// quit ends the display when what was started is done, such as an export, and asks for
// confirmation if changes would be lost.
func (m *model) quit() {
	if m.quitWaits = len(m.running) > 0; m.quitWaits {
		m.notify("quits when what was started is done; "+m.keyOf("interrupt")+" quits at once", canvas.Warn)
		return
	}
	if m.annotations.Unsaved() && !m.quitAsked {
		m.quitAsked = true
		text := m.keyOf("quit") + " again quits and loses names and bookmarks"
		if m.o.Export != nil {
			text += ", " + m.keyOf("export") + " exports them"
		}
		m.notify(text, canvas.Warn)
		return
	}
	m.end()
}

func (m *model) suspend() {
	m.suspended = true
	m.start(tea.Suspend)
}

func (m *model) interrupt() {
	m.interrupted = true
	m.end()
}

func (m *model) end() {
	m.quitting = true
	m.start(tea.Quit)
}
