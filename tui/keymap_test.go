package tui

import (
	"strings"
	"testing"

	"hubbub/tui/canvas"
	"hubbub/tui/tuitest"

	tea "github.com/charmbracelet/bubbletea"
)

// keymapOf are the keys of settings that are right.
func keymapOf(t *testing.T, settings ...KeySetting) Keymap {
	t.Helper()
	k, i, err := NewKeymap(settings)
	if err != nil {
		t.Fatalf("setting %d: %v", i, err)
	}
	return k
}

// modelWithKeys is a testModel with other keys.
func modelWithKeys(t *testing.T, w, h int, settings ...KeySetting) *model {
	t.Helper()
	m := testModel(tuitest.State(tuitest.FourSpeakers, 100, 1), w, h)
	m.o.Keys = keymapOf(t, settings...)
	m.bindKeys()
	return m
}

// TestKeymap: a command has the keys of its setting and not its own, on its screen; the
// help, the line of keys and messages show them.
func TestKeymap(t *testing.T) {
	m := modelWithKeys(t, 120, 34,
		KeySetting{"", "freeze", []string{"z", "f5"}}, KeySetting{"", "zoom in", []string{"Z"}},
		KeySetting{"", "undo", []string{"ctrl+u"}}, KeySetting{"", "mute", []string{"space"}}, KeySetting{"turn-list", "copy", []string{"c"}},
		KeySetting{"", "present", []string{"alt+space", "backspace"}}, KeySetting{"", "sort", nil}, KeySetting{"", "pause", []string{"p"}})
	screenHas(t, m, "z freeze")
	screenHas(t, m, "Z - zoom")
	screenHas(t, m, "FROZEN", "z")
	m.Update(tea.KeyMsg{Type: tea.KeyF5})
	screenHasNot(t, m, "FROZEN")
	screenHas(t, m, "not in the shares, ctrl+u undoes it", "1", "space")
	screenHasNot(t, m, "FROZEN")
	m.Update(tea.KeyMsg{Type: tea.KeyCtrlU})
	screenHas(t, m, "undone: ")
	for _, key := range []tea.KeyMsg{{Type: tea.KeySpace, Runes: []rune{' '}, Alt: true}, {Type: tea.KeyBackspace}} {
		screenHas(t, m, "BACK", "left")
		m.Update(key)
		screenHasNot(t, m, "BACK")
	}
	screenHasNot(t, m, "sorted by talk time", "s")
	screenHas(t, m, "lanes sorted by talk time", ":", "sort", "enter")
	screenHas(t, m, "ctrl+u     undo", "?")
	screenHasNot(t, m, "sort by talk time")
	screenHas(t, m, "c copy", "?", "t")
}

// TestKeymapErrors: what is wrong is said, about the setting that is wrong.
func TestKeymapErrors(t *testing.T) {
	for _, c := range []struct {
		setting KeySetting
		says    string
	}{
		{KeySetting{"", "fly", []string{"f"}}, `no command "fly"`},
		{KeySetting{"wires", "raw", []string{"f"}}, `no screen "wires"`},
		{KeySetting{"wire-view", "mute", []string{"f"}}, `no command "mute"`},
		{KeySetting{"", "mute", []string{"ctr+x"}}, `no key "ctr+x"`},
		{KeySetting{"", "mute", []string{"xx"}}, `no key "xx"`},
		{KeySetting{"", "mute", []string{"\x07"}}, `no key`},
		{KeySetting{"", "mute", []string{"o"}}, `o is also the key of "solo"`},
		{KeySetting{"", "mute", []string{"3"}}, `3 is also the key of "select that lane"`},
		{KeySetting{"", "mute", []string{"ctrl+c"}}, `ctrl+c is also the key of "interrupt"`},
		{KeySetting{"", "help", []string{"/"}}, `/ is also the key of "filter"`},      // everywhere, and on the wire view
		{KeySetting{"", "faster", []string{","}}, `, is also the key of "seek back"`}, // both of a replay
		{KeySetting{"", "interrupt", []string{"i"}}, `ctrl+c always interrupts`},
	} {
		_, i, err := NewKeymap([]KeySetting{{"", "solo", []string{"o"}}, c.setting})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.setting, err, c.says)
		} else if i != 1 {
			t.Errorf("%v: setting %d is wrong, want 1", c.setting, i)
		}
	}
	// Exchanged keys, and keys of a replay, are no conflicts.
	keymapOf(t, KeySetting{"", "mute", []string{"o"}}, KeySetting{"", "solo", []string{"x"}}, KeySetting{"", "freeze", []string{"p"}})
	// The keys of the table are right as settings, too.
	all := Keymap{}.Commands()
	for i, c := range all {
		if c.Command == "interrupt" {
			all = append(all[:i], all[i+1:]...)
			break
		}
	}
	keymapOf(t, all...)
}

// TestKeymapOfOneDirection: the help shows no key that means nothing.
func TestKeymapOfOneDirection(t *testing.T) {
	m := modelWithKeys(t, 120, 34, KeySetting{"", "zoom out", nil}, KeySetting{"", "page forward", nil})
	screenHas(t, m, " + ", "?")
	screenHasNot(t, m, "+ -")
	screenHas(t, m, "shift+left")
	screenHasNot(t, m, "shift ←")
}

// TestKeymapInTexts: the texts of the wire view have the keys of the settings.
func TestKeymapInTexts(t *testing.T) {
	m := wireModel(tuitest.Log(false), 120, 34)
	m.o.Keys = keymapOf(t, KeySetting{"wire-view", "file", []string{"F"}}, KeySetting{"wire-view", "unfold", []string{"U"}})
	m.bindKeys()
	screenHas(t, m, "F writes a file", "c")
	screenHas(t, m, "chunks; U unfolds them:", "enter")
}

// TestKeysOfLanes: what enter answers without a lane names the keys of lanes, in ASCII if need be.
func TestKeysOfLanes(t *testing.T) {
	m := modelWithKeys(t, 100, 30, KeySetting{"", "previous lane", []string{"K"}})
	screenHas(t, m, "select a lane first, with K and ↓", "enter")
	m.glyphs = canvas.NewGlyphs(true)
	screenHas(t, m, "select a lane first, with K and down", "enter")
}
