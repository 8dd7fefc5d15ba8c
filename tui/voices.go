package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// voiceOffers is what the screen knows about learning voices.
type voiceOffers struct {
	asked     map[string]bool // labels whose voice the user was asked about
	corrected int64           // revision of the annotations that Correct has seen
	busy      bool            // Remember or Correct runs
}

// offerToRemember asks once, after a speaker got a name, whether to remember the
// voice. It does not ask about a voice under the name by which it was recognised.
func (m *model) offerToRemember(label string) {
	if m.o.Memory == nil || !m.o.Memory.Asks() || m.voices.asked[label] || m.state.Watching {
		return
	}
	if p, named := m.named(label); named && m.session().Match(label) != p.Name {
		m.askRemember(label)
	}
}

// named is the speaker of a label under the name that the user has given, if there is one.
func (m *model) named(label string) (p display.Speaker, named bool) {
	s := m.session()
	i := s.Index(label)
	if i < 0 {
		return p, false
	}
	p = s.Speakers[i]
	p.Name = s.Annotations.Name(label) // without the number that tells it from another one of the name
	return p, p.Name != s.Annotations.Root(label)
}

// askRemember asks whether to remember the voice of a named speaker.
func (m *model) askRemember(label string) {
	p, named := m.named(label)
	if !named {
		m.notify(m.keyOf("name")+" names the speaker first", canvas.Dim)
		return
	}
	m.voices.asked[label] = true
	forms := []string{
		"remember the voice of " + p.Name + ", on this machine only?",
		"remember " + p.Name + "'s voice, on this machine only?",
		"remember " + p.Name + "'s voice on this machine?",
		"remember " + p.Name + "'s voice?",
	}
	if m.o.Memory.Stored(p.Name) {
		forms = []string{
			"a voice of " + p.Name + " is stored already: replace it with this one?",
			"a voice of " + p.Name + " is stored already: replace it?",
			"replace the stored voice of " + p.Name + "?",
			"replace " + p.Name + "'s voice?",
		}
	}
	m.question = &question{
		forms: forms, style: p.Style,
		answers: []answer{
			{"y", "yes", func(m *model) tea.Cmd { return m.remember(label, p.Name) }},
			{"n", "no", nil},
			{"N", "never ask", (*model).neverRemember},
		},
	}
}

// remember learns a voice.
func (m *model) remember(label, name string) tea.Cmd {
	m.voices.busy = true
	m.notify("learning the voice of "+name, canvas.Dim)
	return runAsync(func() (string, error) { return m.o.Memory.Remember(label) }, func(err error) {
		m.voices.busy, m.voices.corrected = false, -1 // the name may have changed meanwhile
		if err != nil {
			delete(m.voices.asked, label)
			return
		}
		m.o.Voices = m.o.Memory.Folder() // which the help shows
	})
}

func (m *model) neverRemember() tea.Cmd {
	text := "hubbub does not ask again; " + m.keyOf("remember") + " remembers a voice"
	return runAsync(func() (string, error) { return text, m.o.Memory.Never() }, nil)
}

// correctVoices applies changed names to what was learnt in this session.
func (m *model) correctVoices() tea.Cmd {
	_, revision := m.annotations.Load()
	if m.o.Memory == nil || m.voices.busy || m.voices.corrected == revision {
		return nil
	}
	m.voices.busy = true
	return runAsync(m.o.Memory.Correct, func(error) { m.voices.busy, m.voices.corrected = false, revision })
}
