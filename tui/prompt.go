package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// The prompt, in place of the line of keys: a line of text, the choice of a lane, or the question
// of voices.go.
//
//	name of SPEAKER_01: Anna█                              enter ok  esc cancel
//	merge SPEAKER_03 into Anna?  ↑ ↓ or 1-4  enter yes  esc no
//	remember the voice of Anna, on this machine only?  y yes  n no  N never ask
//
// A long question covers lines above.

// textInput is a line of text that is being typed: enter ends it with done, esc without. The cursor
// is between before and after, and moves by characters as users see them.
type textInput struct {
	label         string
	style         canvas.Style
	limit         int // runes
	before, after string
	complete      func(text string) []string // what the text may become; nil = anything
	done          func(text string)
}

// maxFilter bounds the text of a filter, in runes.
const maxFilter = 60

// askFilter asks for the words that a row of a list must have.
func (m *model) askFilter(words string, set func(words string)) {
	m.input = &textInput{
		label: "only rows with:", style: canvas.Brand, limit: maxFilter, before: words,
		done: set,
	}
}

// inputKey is for the keys while text is typed.
func (m *model) inputKey(msg tea.KeyMsg) {
	t := m.input
	switch msg.Type {
	case tea.KeyEnter:
		m.input = nil
		if !msg.Alt { // else esc and enter, read at once
			t.done(strings.TrimSpace(t.before + t.after))
		}
	case tea.KeyEsc:
		m.input = nil
	case tea.KeyRunes, tea.KeySpace:
		if !msg.Alt {
			t.insert(string(msg.Runes))
		}
	case tea.KeyBackspace, tea.KeyCtrlH:
		t.before = t.before[:canvas.LastCluster(t.before)]
	case tea.KeyDelete, tea.KeyCtrlD:
		t.after = t.after[canvas.FirstCluster(t.after):]
	case tea.KeyLeft, tea.KeyCtrlB:
		i := canvas.LastCluster(t.before)
		t.before, t.after = t.before[:i], t.before[i:]+t.after
	case tea.KeyRight, tea.KeyCtrlF:
		i := canvas.FirstCluster(t.after)
		t.before, t.after = t.before+t.after[:i], t.after[i:]
	case tea.KeyTab:
		if t.complete == nil {
			break
		}
		if all := t.complete(t.before + t.after); len(all) > 0 {
			t.before, t.after = all[0], ""
		}
	case tea.KeyHome, tea.KeyCtrlA:
		t.before, t.after = "", t.before+t.after
	case tea.KeyEnd, tea.KeyCtrlE:
		t.before, t.after = t.before+t.after, ""
	case tea.KeyCtrlU:
		t.before = ""
	case tea.KeyCtrlK:
		t.after = ""
	case tea.KeyCtrlW:
		trimmed := strings.TrimRight(t.before, " ")
		t.before = trimmed[:strings.LastIndexByte(trimmed, ' ')+1]
	}
}

// insert adds the characters that a name or a note may have, up to the limit.
// White space becomes blanks.
func (t *textInput) insert(text string) {
	for _, r := range text {
		if utf8.RuneCountInString(t.before)+utf8.RuneCountInString(t.after) >= t.limit {
			return
		}
		if r == '\t' || r == '\n' || r == '\r' {
			r = ' '
		}
		if r == ' ' || protocol.IsJoiner(r) || protocol.Clean(string(r), 2) != "" {
			t.before += string(r)
		}
	}
}

// laneChoice is a question that is answered by choosing a lane. While it is
// asked, the selection moves among the answers.
type laneChoice struct {
	prompt func(name string) string
	do     func(label string)
	except string // label of a speaker who is no answer; "" = everybody is
	before string // label that was selected before the question
	text   bool   // do asks for a text: a letter is its first one, and chooses the selected lane, as a paste does
}

// askLane asks for a lane, and selects a proposal.
func (m *model) askLane(q laneChoice, proposal string) {
	q.before, m.selected = m.selected, proposal
	m.choice = &q
}

// choiceKey is for the keys while a lane is asked for.
func (m *model) choiceKey(name string) {
	if r, size := utf8.DecodeRuneInString(name); m.choice.text && size == len(name) && unicode.IsLetter(r) {
		m.chooseWithText(name)
		return
	}
	switch name {
	case "up", "k", "left":
		m.selectAnswer(-1)
	case "down", "j", "right", "tab":
		m.selectAnswer(1)
	case "esc", "q":
		m.selected, m.choice = m.choice.before, nil
	case "enter", " ":
		m.chooseSelected()
	default:
		if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
			if s := m.session(); int(name[0]-'1') < len(s.Speakers) {
				m.selected = s.Speakers[name[0]-'1'].Label
				m.chooseSelected()
			}
		}
	}
}

// selectAnswer moves the selection to the next lane that is an answer.
func (m *model) selectAnswer(by int) {
	before := m.selected
	m.selectBy(by)
	if m.choice.except != "" && m.selected == m.choice.except {
		if m.selectBy(by); m.selected == m.choice.except { // there is none
			m.selected = before
		}
	}
}

// chooseWithText chooses the selected lane, and begins the text that do asks for.
func (m *model) chooseWithText(text string) {
	if m.chooseSelected(); m.input != nil {
		m.input.before = ""
		m.input.insert(text)
	}
}

func (m *model) chooseSelected() {
	q := m.choice
	m.choice = nil
	if m.session().Index(m.selected) >= 0 {
		q.do(m.selected)
	}
}

func (m *model) prompting() bool { return m.input != nil || m.question != nil || m.choice != nil }

// drawPrompt draws the prompt, if there is one.
func (m *model) drawPrompt(c *canvas.Canvas, s *display.Session, y int) bool {
	switch {
	case m.input != nil:
		m.drawInput(c, y)
	case m.question != nil:
		m.drawAsked(c, y, m.question.text, m.question.style, "y yes  n no  N never ask")
	case m.choice != nil:
		m.drawChoice(c, s, y)
	default:
		return false
	}
	return true
}

// drawInput draws the label, the text around the cursor and, where there is
// room, the keys that end it.
func (m *model) drawInput(c *canvas.Canvas, y int) {
	t := m.input
	right := m.w - 1
	if m.w >= 70 {
		keys := "enter ok  esc cancel"
		if t.complete != nil {
			keys = "tab completes  enter runs"
		}
		right -= c.TextRight(right, y, keys, canvas.Dim) + 2
	}
	label := canvas.Fit(t.label, max(right-14, 8), 6, m.glyphs.Ellipsis)
	x := 1 + c.Text(1, y, right, label, t.style.Bold()) + 1
	room := max(right-x-1, 1)
	before := t.before
	if w := canvas.Width(before); w > room-1 { // the end is where the user types
		before = m.glyphs.Ellipsis + canvas.Tail(before, room-1-canvas.Width(m.glyphs.Ellipsis))
	}
	x += c.Text(x, y, room, before, canvas.Plain)
	under, after := " ", t.after
	if after != "" {
		n := canvas.FirstCluster(after)
		under, after = after[:n], after[n:]
	}
	x += c.Text(x, y, max(right-x, 1), under, canvas.Plain.Reverse())
	x += c.Text(x, y, max(right-x, 0), after, canvas.Plain) + 1
	if t.complete != nil {
		matches := strings.Join(t.complete(t.before+t.after), "  ")
		c.Fitted(x, y, max(right-x, 0), matches, 0, canvas.Dim)
	}
}

func (m *model) drawChoice(c *canvas.Canvas, s *display.Session, y int) {
	name, style, keys := "", canvas.Plain, "enter yes  esc no"
	if i := s.Index(m.selected); i >= 0 {
		name, style = s.Speakers[i].Name, s.Speakers[i].Style
	}
	if n := len(s.Speakers); n > 1 {
		ascii := m.glyphs.ASCII
		keys = shownKey("up", ascii) + " " + shownKey("down", ascii) + " or 1-" + strconv.Itoa(min(n, 9)) + "  " + keys
	}
	m.drawAsked(c, y, m.choice.prompt(name), style, keys)
}

// drawAsked draws a question and the keys that answer it up to row y.
func (m *model) drawAsked(c *canvas.Canvas, y int, text string, style canvas.Style, keys string) {
	rows := canvas.WrapRows(text, m.w-2, maxTextRows)
	if canvas.Width(rows[len(rows)-1])+2+canvas.Width(keys) > m.w-2 {
		rows = append(rows, "")
	}
	x := 1
	if used := m.drawRows(c, y, rows, style.Bold()); used > 0 {
		x += used + 2
	}
	c.Fitted(x, y, m.w-1-x, keys, 0, canvas.Dim)
}

// The commands by name: what the keys of the present screen do, for users who
// know a word and not the key.

func (m *model) commandNames() map[string]*binding {
	names := map[string]*binding{}
	for _, b := range m.active() {
		if b.name != "" && b.name != "command" && names[b.name] == nil {
			names[b.name] = b
		}
	}
	return names
}

// matchCommands are the names that begin with text, then those that contain it.
func matchCommands(names map[string]*binding, text string) (matches []string) {
	text = strings.ToLower(text)
	for name := range names {
		if strings.Contains(name, text) {
			matches = append(matches, name)
		}
	}
	later := func(name string) int { return min(strings.Index(name, text), 1) }
	slices.SortFunc(matches, func(a, b string) int { return cmp.Or(later(a)-later(b), strings.Compare(a, b)) })
	return matches
}

// maxCommand bounds the name of a command, in runes.
const maxCommand = 40

// askCommand asks for the name of a command and runs it, or for a time and goes there
// on the timeline.
func (m *model) askCommand() {
	names := m.commandNames()
	m.input = &textInput{
		label: ":", style: canvas.Brand, limit: maxCommand,
		complete: func(text string) []string { return matchCommands(names, text) },
		done: func(text string) {
			matches := matchCommands(names, text)
			at, isTime := display.ParseClock(text)
			switch {
			case text == "":
			case isTime:
				m.act(&binding{do: func(m *model) { m.wire = nil; m.goTo(at) }}, "")
			case len(matches) == 0:
				m.notify("there is no command "+text+"; tab completes, "+m.keyOf("help")+" lists the keys", canvas.Warn)
			default:
				m.act(names[matches[0]], "")
			}
		},
	}
}
