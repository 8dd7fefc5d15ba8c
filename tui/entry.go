package tui

import (
	"strings"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
)

// entry is a line of text that is being typed, in place of the line of keys.
// The cursor stands between before and after, and moves by what people see as
// characters.
type entry struct {
	prompt        string
	role          role
	limit         int // runes
	before, after string
	done          func(m *model, text string) tea.Cmd
}

// ask begins an entry; enter ends it with done, esc without.
func (m *model) ask(e entry) { m.entry = &e }

// entryKey is for the keys while text is typed.
func (m *model) entryKey(msg tea.KeyMsg) tea.Cmd {
	e := m.entry
	switch msg.Type {
	case tea.KeyEnter:
		m.entry = nil
		return e.done(m, strings.TrimSpace(e.before+e.after))
	case tea.KeyEsc:
		m.entry = nil
	case tea.KeyRunes, tea.KeySpace:
		if !msg.Alt {
			e.insert(string(msg.Runes))
		}
	case tea.KeyBackspace, tea.KeyCtrlH:
		e.before = e.before[:lastCluster(e.before)]
	case tea.KeyDelete, tea.KeyCtrlD:
		e.after = e.after[firstCluster(e.after):]
	case tea.KeyLeft, tea.KeyCtrlB:
		i := lastCluster(e.before)
		e.before, e.after = e.before[:i], e.before[i:]+e.after
	case tea.KeyRight, tea.KeyCtrlF:
		i := firstCluster(e.after)
		e.before, e.after = e.before+e.after[:i], e.after[i:]
	case tea.KeyHome, tea.KeyCtrlA:
		e.before, e.after = "", e.before+e.after
	case tea.KeyEnd, tea.KeyCtrlE:
		e.before, e.after = e.before+e.after, ""
	case tea.KeyCtrlU:
		e.before = ""
	case tea.KeyCtrlK:
		e.after = ""
	case tea.KeyCtrlW:
		trimmed := strings.TrimRight(e.before, " ")
		e.before = trimmed[:strings.LastIndexByte(trimmed, ' ')+1]
	}
	return nil
}

// insert takes what may stand in a name or a note, up to the limit. White
// space becomes a blank each, so that words can be typed one after the other.
func (e *entry) insert(text string) {
	for _, r := range text {
		if utf8.RuneCountInString(e.before)+utf8.RuneCountInString(e.after) >= e.limit {
			return
		}
		if r == '\t' || r == '\n' || r == '\r' {
			r = ' '
		}
		if r == ' ' || protocol.IsJoiner(r) || protocol.Clean(string(r), 2) != "" {
			e.before += string(r)
		}
	}
}

// lastCluster is where the last character of s begins.
func lastCluster(s string) int {
	at := 0
	for at < len(s) {
		n := firstCluster(s[at:])
		if at+n >= len(s) {
			break
		}
		at += n
	}
	return at
}

func firstCluster(s string) int {
	cluster, _, _ := nextCluster(s)
	return len(cluster)
}

// drawEntry draws the prompt, the text around the cursor and, where there is
// room, how to end.
func (m *model) drawEntry(c *canvas, y int) {
	e, dim := m.entry, style{role: roleDim}
	right := m.w - 1
	if m.w >= 70 {
		right -= c.right(right, y, "enter keep  esc drop", dim) + 2
	}
	prompt := fit(e.prompt, max(right-14, 8), 6, m.glyphs.ellipsis)
	x := 1 + c.text(1, y, right, prompt, style{role: e.role, attr: bold}) + 1
	room := max(right-x-1, 1)
	before := e.before
	if w := textWidth(before); w > room-1 { // the end is where people type
		before = m.glyphs.ellipsis + tail(before, room-1-textWidth(m.glyphs.ellipsis))
	}
	x += c.text(x, y, room, before, style{})
	under, after := " ", e.after
	if after != "" {
		n := firstCluster(after)
		under, after = after[:n], after[n:]
	}
	x += c.text(x, y, max(right-x, 1), under, style{attr: reverse})
	c.text(x, y, max(right-x, 0), after, style{})
}

// drawPick draws the question for a lane.
func (m *model) drawPick(c *canvas, b *board, y int) {
	name, r := "", rolePlain
	if i := b.index(m.selected); i >= 0 {
		name, r = b.people[i].name, b.people[i].role
	}
	updown := "↑ ↓"
	if m.glyphs.ascii {
		updown = "up down"
	}
	last := min(len(b.people), 9)
	m.drawSegments(c, 1, y, m.w-2, []segment{
		{m.pick.prompt(name), style{role: r, attr: bold}, 0},
		{updown + " or 1-" + itoa(last), style{role: roleDim}, 2},
		{"enter yes", style{role: roleDim}, 1},
		{"esc no", style{role: roleDim}, 1},
	}, 2)
}
