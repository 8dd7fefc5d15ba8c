package tui

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/tui/canvas"
)

// The commands by name: what the keys of the present screen do, for users who
// know a word and not the key.

// commandNames are the commands of this screen, sorted. Those of the list stand
// before those of the timeline, whose keys they replace.
func (m *model) commandNames() map[string]*binding {
	names := map[string]*binding{}
	for i := range m.bindings {
		b := &m.bindings[i]
		if b.name != "" && b.name != "command" && (b.on == m.screen() || b.on == anyScreen || m.screen() == listScreen && b.on == timelineScreen) {
			if known := names[b.name]; known == nil || known.on == timelineScreen {
				names[b.name] = b
			}
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
	slices.SortFunc(matches, func(a, b string) int {
		if p, q := strings.HasPrefix(a, text), strings.HasPrefix(b, text); p != q {
			return map[bool]int{true: -1, false: 1}[p]
		}
		return strings.Compare(a, b)
	})
	return matches
}

// maxCommand bounds the name of a command, in runes.
const maxCommand = 40

// askCommand asks for the name of a command and runs it.
func (m *model) askCommand() {
	names := m.commandNames()
	m.askText(textInput{
		label: ":", style: canvas.Brand, limit: maxCommand,
		complete: func(text string) []string { return matchCommands(names, text) },
		done: func(m *model, text string) tea.Cmd {
			if text == "" {
				return nil
			}
			matches := matchCommands(names, text)
			if len(matches) == 0 {
				m.notify("there is no command "+text+"; tab completes, "+m.keyOf("help")+" lists the keys", canvas.Warn)
				return nil
			}
			return names[matches[0]].do(m)
		},
	})
}

// completeText extends the text by what all completions that begin with it have
// in common; if that is nothing, it becomes the first completion.
func (t *textInput) completeText() {
	if t.complete == nil {
		return
	}
	text := t.before + t.after
	all := t.complete(text)
	if len(all) == 0 {
		return
	}
	common := ""
	for i, c := range all {
		switch {
		case !strings.HasPrefix(c, strings.ToLower(text)):
			continue
		case i == 0:
			common = c
		}
		for !strings.HasPrefix(c, common) {
			common = common[:len(common)-1]
		}
	}
	if len(common) <= len(text) {
		common = all[0]
	}
	t.before, t.after = common, ""
}
