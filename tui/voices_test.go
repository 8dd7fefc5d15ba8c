package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// fakeMemory records its calls.
type fakeMemory struct {
	calls  []string
	never  bool
	failed error
	fixes  string
}

func (f *fakeMemory) Asks() bool     { return !f.never }
func (f *fakeMemory) Folder() string { return "/home/sam/voices" }
func (f *fakeMemory) Never() error   { f.never = true; return nil }
func (f *fakeMemory) Correct() (string, error) {
	return f.fixes, nil
}
func (f *fakeMemory) Remember(label string) (string, error) {
	f.calls = append(f.calls, label)
	return "a voiceprint is stored in /home/sam/voices", f.failed
}

func voiceModel(t *testing.T) (*model, *fakeMemory) {
	t.Helper()
	m := testModel(sampleState(fourSpeakers, 60, 1), 120, 34)
	f := &fakeMemory{}
	m.o.Memory = f
	m.bindings, m.byKey = nil, [screens]map[string]*binding{}
	m.bindKeys()
	return m, f
}

func nameLane(m *model, lane, name string) {
	press(m, lane, "r")
	typeText(m, name)
	press(m, "enter")
}

// TestOfferToRemember: after a name the screen asks once for each speaker, and only y
// consents.
func TestOfferToRemember(t *testing.T) {
	m, f := voiceModel(t)
	nameLane(m, "1", "Anna")
	screenHas(t, m, "remember the voice of Anna, on this machine only?  y yes  n no  N never ask")
	if cmd := press(m, "enter"); cmd != nil && runCommand(cmd) != nil || len(f.calls) > 0 {
		t.Error("enter consents")
	}
	press(m, "n")
	screenHasNot(t, m, "remember")
	nameLane(m, "1", "e") // Annae
	screenHasNot(t, m, "remember")

	nameLane(m, "2", "Ben")
	m.Update(runCommand(press(m, "y")))
	if !slices.Equal(f.calls, []string{"SPEAKER_01"}) {
		t.Errorf("learnt %q", f.calls)
	}
	screenHas(t, m, "a voiceprint is stored in /home/sam/voices")
	press(m, "?")
	screenHas(t, m, "voices are stored in /home/sam/voices")
	press(m, "esc")

	// A failure is shown, and the next name asks again.
	f.failed = hint.Add(errors.New("too little speech"), "Try again.")
	nameLane(m, "3", "Eva")
	m.Update(runCommand(press(m, "y")))
	screenHas(t, m, "too little speech")
	nameLane(m, "3", "l")
	screenHas(t, m, "remember the voice of Eval")
	m.Update(runCommand(press(m, "N")))
	nameLane(m, "4", "Rosa")
	screenHasNot(t, m, "remember the voice of")
	press(m, "V") // asks all the same
	screenHas(t, m, "remember the voice of Rosa")
	press(m, "esc")
	screenHasNot(t, m, "remember the voice of")
}

// TestQuestionTakesNoOtherKeys: the next name is typed although the question was not
// answered, each key for itself or several read at once, and nobody has consented.
func TestQuestionTakesNoOtherKeys(t *testing.T) {
	for name, types := range map[string]func(*model){
		"key by key": func(m *model) { nameLane(m, "2", "Nya") },
		"at once": func(m *model) {
			m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("2rNya")})
			press(m, "enter")
		},
		"after esc": func(m *model) {
			m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("2"), Alt: true})
			press(m, "r")
			typeText(m, "Nya")
			press(m, "enter")
		},
	} {
		m, f := voiceModel(t)
		nameLane(m, "1", "Anna")
		types(m)
		a, _ := m.annotations.Load()
		if got := a.Names(); got["SPEAKER_00"] != "Anna" || got["SPEAKER_01"] != "Nya" || len(f.calls) > 0 || f.never {
			t.Errorf("%s: names %q, learnt %q, never %v", name, got, f.calls, f.never)
		}
		screenHas(t, m, "remember the voice of Nya")
	}
}

// TestNoOfferForRecognised: the voice of the name is known.
func TestNoOfferForRecognised(t *testing.T) {
	m, _ := voiceModel(t)
	s := m.state
	s.Timeline.Lanes = append([]protocol.Lane(nil), s.Timeline.Lanes...)
	s.Timeline.Lanes[0].Match = "Sam"
	m.later(s)
	nameLane(m, "1", "Sam") // over the recognised name
	screenHasNot(t, m, "remember the voice of")
	press(m, "1", "r", "backspace", "enter")
	screenHas(t, m, "remember the voice of Sa,")
}

// TestCorrectionOfVoices: every change of names is passed on once.
func TestCorrectionOfVoices(t *testing.T) {
	m, f := voiceModel(t)
	if cmd := m.correctVoices(); cmd != nil {
		t.Error("nothing was changed")
	}
	nameLane(m, "1", "Anna")
	press(m, "n")
	f.fixes = "the voice of Sam is stored as Anna now"
	m.refresh()
	cmd := m.correctVoices()
	if m.correctVoices() != nil {
		t.Error("two corrections at once")
	}
	m.Update(runCommand(cmd))
	screenHas(t, m, f.fixes)
	if m.correctVoices() != nil {
		t.Error("corrected again")
	}
}

// TestRememberCommands is the same for screen readers.
func TestRememberCommands(t *testing.T) {
	c, b, _ := commandsAt(60)
	f := &fakeMemory{}
	c.o.Memory = f
	for _, line := range []string{"remember 1", "name 1 Anna", "name 1 Ann", "remember Ann", "remember nobody", "never", "name 2 Ben"} {
		if err := c.Run(line); err != nil {
			t.Fatal(err)
		}
	}
	f.fixes = "the voice of Ann is stored as Eva now"
	_ = c.Run("name 1 Eva")
	want := `SPEAKER_00 has no name yet. Type name SPEAKER_00 and the name.
SPEAKER_00 is now Anna.
Remember the voice of Anna, on this machine only? Type remember Anna, or never to be asked no more.
Anna is now Ann.
a voiceprint is stored in /home/sam/voices.
No speaker is called nobody; who lists all.
hubbub does not ask again. remember still learns a voice.
SPEAKER_01 is now Ben.
Ann is now Eva.
the voice of Ann is stored as Eva now.
`
	if b.String() != want || !slices.Equal(f.calls, []string{"SPEAKER_00"}) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.TrimSpace(b.String()), want)
	}
}
