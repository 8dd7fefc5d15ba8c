package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
	"hubbub/tui/tuitest"
)

func voiceModel(t *testing.T) (*model, *tuitest.Memory) {
	t.Helper()
	m := testModel(tuitest.State(tuitest.FourSpeakers, 60, 1), 120, 34)
	f := &tuitest.Memory{}
	m.o.Memory = f
	m.bindKeys()
	return m, f
}

func nameLane(m *model, lane, name string) {
	press(m, lane, "r", name, "enter")
}

// TestOfferToRemember: after a name the screen asks once for each speaker, and only y
// consents.
func TestOfferToRemember(t *testing.T) {
	m, f := voiceModel(t)
	nameLane(m, "1", "Anna")
	screenHas(t, m, "remember the voice of Anna, on this machine only?  y yes  n no  N never ask")
	if cmd := press(m, "enter"); cmd != nil && runCommand(cmd) != nil || len(f.Calls) > 0 {
		t.Error("enter consents")
	}
	screenHasNot(t, m, "remember", "n")
	nameLane(m, "1", "e") // Annae
	screenHasNot(t, m, "remember")

	nameLane(m, "2", "Ben")
	m.Update(runCommand(press(m, "y")))
	if !slices.Equal(f.Calls, []string{"SPEAKER_01"}) {
		t.Errorf("learnt %q", f.Calls)
	}
	screenHas(t, m, "a voiceprint is stored in /home/sam/voices")
	screenHas(t, m, "voices are stored in /home/sam/voices", "?")
	press(m, "esc")

	// A failure is shown, and the next name asks again.
	f.Failure = hint.Add(errors.New("too little speech"), "Try again.")
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
	screenHasNot(t, m, "remember the voice of", "esc")
}

// TestQuestionOfAStoredVoice: yes would replace it.
func TestQuestionOfAStoredVoice(t *testing.T) {
	m, f := voiceModel(t)
	f.Known = "Anna"
	nameLane(m, "1", "Ann")
	screenHas(t, m, "remember the voice of Ann,")
	press(m, "n")
	nameLane(m, "2", "Anna")
	screenHas(t, m, "a voice of Anna is stored already: replace it with this one?  y yes  n no  N never ask")
	m.Update(tea.WindowSizeMsg{Width: 39, Height: 12})
	screenHas(t, m, "a voice of Anna is stored already:\n replace it with this one?\n y yes  n no  N never ask")
}

// TestTheQuestionIsReadable: nobody consents to what is not on the screen.
func TestTheQuestionIsReadable(t *testing.T) {
	for _, c := range []struct {
		w, h int
		name string
	}{{80, 24, "Margaret"}, {80, 24, strings.Repeat("Bartholomew ", 4)}, {45, 10, "Anna"}, {39, 12, "Anna"}, {20, 5, "Anna"}} {
		m, _ := voiceModel(t)
		nameLane(m, "1", c.name)
		m.Update(tea.WindowSizeMsg{Width: c.w, Height: c.h})
		screen := strings.Join(strings.Fields(strings.Join(screenRows(m), " ")), " ")
		if want := "remember the voice of " + strings.TrimSpace(c.name) + ", on this machine only? y yes n no N"; !strings.Contains(screen, want) {
			t.Errorf("%dx%d: no %q in\n%s", c.w, c.h, want, ansi.Strip(m.View()))
		}
	}
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
			press(m, "r", "Nya", "enter")
		},
	} {
		m, f := voiceModel(t)
		nameLane(m, "1", "Anna")
		types(m)
		a, _ := m.annotations.Load()
		if got := a.Names(); got["SPEAKER_00"] != "Anna" || got["SPEAKER_01"] != "Nya" || len(f.Calls) > 0 || f.Refused {
			t.Errorf("%s: names %q, learnt %q, never %v", name, got, f.Calls, f.Refused)
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
	nameLane(m, "2", "Sam") // Sam (2) on the screen, beside the recognised one
	screenHas(t, m, "remember the voice of Sam,")
	press(m, "u")
	nameLane(m, "1", "Sam") // over the recognised name
	screenHasNot(t, m, "remember the voice of")
	screenHas(t, m, "remember the voice of Sa,", "1", "r", "backspace", "enter")
}

// TestCorrectionOfVoices: every change of names is passed on once.
func TestCorrectionOfVoices(t *testing.T) {
	m, f := voiceModel(t)
	if m.correctVoices(); m.started() != nil {
		t.Error("nothing was changed")
	}
	nameLane(m, "1", "Anna")
	press(m, "n")
	f.Fixes = "the voiceprint of Sam is stored as Anna now"
	m.refresh()
	m.correctVoices()
	cmd := m.started()
	if m.correctVoices(); m.started() != nil {
		t.Error("two corrections at once")
	}
	m.Update(runCommand(cmd))
	screenHas(t, m, f.Fixes)
	if m.correctVoices(); m.started() != nil {
		t.Error("corrected again")
	}
}

// TestCorrectionAfterLearning: a voice that is learnt before any change is corrected
// once.
func TestCorrectionAfterLearning(t *testing.T) {
	m, _ := voiceModel(t)
	a := testkit.Must(protocol.Annotations{}.Rename("SPEAKER_00", "Anna"))(t)
	m.annotations = protocol.NewAnnotationsStore(a)
	press(m, "1", "V")
	m.Update(runCommand(press(m, "y")))
	m.correctVoices()
	cmd := m.started()
	if cmd == nil {
		t.Fatal("the voice is not corrected")
	}
	m.Update(runCommand(cmd))
	if m.correctVoices(); m.started() != nil {
		t.Error("corrected again")
	}
}
