package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
)

// KeySetting gives keys to a command, instead of its own.
type KeySetting struct {
	Screen  string // as in KeyScreens; "" = the timeline, and what all screens have
	Command string // as after `:`
	Keys    []string
}

// keyScreens are the names of the screens in settings.
var keyScreens = [...]string{timelineScreen: "", wireScreen: "wire-view", listScreen: "turn-list", microphoneScreen: "microphone-list", anyScreen: ""}

// KeyScreens are the screens that have commands of their own.
var KeyScreens = keyScreens[wireScreen:anyScreen]

// Keymap is the keys of all commands. The zero value has their own ones.
type Keymap struct {
	settings []KeySetting
}

// NewKeymap applies settings. An error is about settings[i].
func NewKeymap(settings []KeySetting) (k Keymap, i int, err error) {
	k.settings = make([]KeySetting, len(settings))
	for i, s := range settings {
		if err := s.check(); err != nil {
			return k, i, err
		}
		s.Keys = slices.Clone(s.Keys)
		for j, key := range s.Keys {
			if key == "space" || key == "alt+space" {
				s.Keys[j] = strings.TrimSuffix(key, "space") + " " // as Bubble Tea spells it
			}
		}
		k.settings[i] = s
	}
	for i, s := range slices.Backward(settings) { // the later one of two is wrong
		if err := k.conflict(s); err != nil {
			return k, i, err
		}
	}
	return k, 0, nil
}

// check checks a setting by itself.
func (s KeySetting) check() error {
	if s.Screen != "" && !slices.Contains(KeyScreens, s.Screen) {
		return fmt.Errorf("there is no screen %q with keys of its own; they are %s", s.Screen, strings.Join(KeyScreens, ", "))
	}
	if !slices.ContainsFunc(newBindings(), s.means) {
		return fmt.Errorf("there is no command %q", s.Command)
	}
	if s.Command == "interrupt" {
		return fmt.Errorf("ctrl+c always interrupts")
	}
	for _, key := range s.Keys {
		if !isKey(key) {
			return fmt.Errorf("there is no key %q", key)
		}
	}
	return nil
}

// means reports whether the setting is about a binding.
func (s KeySetting) means(b binding) bool {
	return b.name == s.Command && keyScreens[b.on] == s.Screen
}

// keyNames are the keys with names, as Bubble Tea spells them.
var keyNames = func() map[string]tea.KeyType {
	names := map[string]tea.KeyType{"space": tea.KeySpace}
	for t := tea.KeyType(-256); t < 256; t++ {
		if name := t.String(); utf8.RuneCountInString(name) > 1 && t != tea.KeyRunes {
			names[name] = t
		}
	}
	return names
}()

// isKey reports whether a key with this name can be pressed.
func isKey(name string) bool {
	name = strings.TrimPrefix(name, "alt+")
	_, named := keyNames[name]
	r, size := utf8.DecodeRuneInString(name)
	return named || size > 0 && size == len(name) && unicode.IsPrint(r) && r != utf8.RuneError
}

// bindings are those of the table, with the keys of the settings.
func (k Keymap) bindings() []binding {
	all := newBindings()
	for i := range all {
		b := &all[i]
		inHelp := b // the help shows both directions in one line, that of the first
		if b.help == "" {
			inHelp = &all[i-1]
		}
		for _, s := range k.settings {
			if s.means(*b) {
				b.keys, inHelp.shown, inHelp.ascii = s.Keys, "", ""
			}
		}
		if inHelp != b && len(b.keys) > 0 {
			inHelp.opposite = b.keys[0]
		}
	}
	return all
}

func shownKey(key string, ascii bool) string {
	switch {
	case strings.HasSuffix(key, " "):
		return strings.TrimSuffix(key, " ") + "space"
	case ascii:
		return key
	}
	return cmp.Or(map[string]string{"left": "←", "right": "→", "up": "↑", "down": "↓"}[key], key)
}

// conflict is an error if a key of the setting also means something else where the
// command has it.
func (k Keymap) conflict(s KeySetting) error {
	all := k.bindings()
	for _, b := range all {
		if !s.means(b) {
			continue
		}
		for _, other := range all {
			same := b.on == other.on && b.name == other.name
			apart := b.in != other.in && b.in != anySession && other.in != anySession
			if same || apart || b.on != other.on && b.on != anyScreen && other.on != anyScreen {
				continue
			}
			for _, key := range b.keys {
				if slices.Contains(other.keys, key) {
					return fmt.Errorf("%s is also the key of %q", shownKey(key, true), cmp.Or(other.name, other.help))
				}
			}
		}
	}
	return nil
}

// Key is the key of a command of the timeline, as the screen shows it.
func (k Keymap) Key(command string) string {
	return keyOf(k.bindings(), timelineScreen, command, false)
}

// Commands are the commands with their keys, as they are set.
func (k Keymap) Commands() (all []KeySetting) {
	for _, b := range k.bindings() {
		if b.name == "" {
			continue
		}
		s := KeySetting{Screen: keyScreens[b.on], Command: b.name}
		for _, key := range b.keys {
			s.Keys = append(s.Keys, shownKey(key, true))
		}
		all = append(all, s)
	}
	return all
}

// keyOf is the key of a command on a screen, as it is shown; without a key, the
// command.
func keyOf(bindings []binding, on screen, name string, ascii bool) string {
	for _, where := range []screen{on, timelineScreen, anyScreen} {
		for _, b := range bindings {
			if b.on == where && b.name == name && len(b.keys) > 0 {
				return shownKey(b.keys[0], ascii)
			}
		}
	}
	return ":" + name
}

// keyOf is the key of a command on the present screen.
func (m *model) keyOf(name string) string {
	return keyOf(m.bindings, m.screen(), name, m.glyphs.ASCII)
}
