package tui

import (
	"cmp"

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

// voiceMsg is the result of a call of VoiceMemory.
type voiceMsg struct {
	text     string
	err      error
	learning string // label of Remember; "" = it was another call
	revision int64  // of the annotations that Correct has seen
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

// named is the speaker of a label, and whether the user has given a name.
func (m *model) named(label string) (p display.Speaker, named bool) {
	s := m.session()
	i := s.Index(label)
	if i < 0 {
		return p, false
	}
	return s.Speakers[i], s.Annotations.Name(label) != s.Annotations.Root(label)
}

// askRemember asks whether to remember the voice of a named speaker.
func (m *model) askRemember(label string) tea.Cmd {
	p, named := m.named(label)
	if !named {
		m.notify(m.keyOf("name")+" names the speaker first", canvas.Dim)
		return nil
	}
	if m.voices.asked == nil {
		m.voices.asked = map[string]bool{}
	}
	m.voices.asked[label] = true
	m.question = &question{
		text: "remember the voice of " + p.Name + ", on this machine only?", style: p.Style,
		answers: []answer{
			{"y", "yes", func(m *model) tea.Cmd { return m.remember(label, p.Name) }},
			{"n", "no", nil},
			{"N", "never ask", (*model).neverRemember},
		},
	}
	return nil
}

// remember learns a voice on a goroutine of Bubble Tea's.
func (m *model) remember(label, name string) tea.Cmd {
	m.voices.busy = true
	m.notify("learning the voice of "+name, canvas.Dim)
	memory := m.o.Memory
	return func() tea.Msg {
		text, err := memory.Remember(label)
		return voiceMsg{text: text, err: err, learning: label}
	}
}

func (m *model) neverRemember() tea.Cmd {
	memory, key := m.o.Memory, m.keyOf("remember")
	return func() tea.Msg {
		return voiceMsg{text: "hubbub does not ask again; " + key + " remembers a voice", err: memory.Never()}
	}
}

// correctVoices applies changed names to what was learnt in this session.
func (m *model) correctVoices() tea.Cmd {
	if m.o.Memory == nil || m.voices.busy || m.voices.corrected == m.revision {
		return nil
	}
	m.voices.busy = true
	memory, revision := m.o.Memory, m.revision
	return func() tea.Msg {
		text, err := memory.Correct()
		return voiceMsg{text: text, err: err, revision: revision}
	}
}

func (m *model) voiceDone(msg voiceMsg) {
	m.voices.busy = false
	m.voices.corrected = cmp.Or(msg.revision, -1) // after learning, the name may have changed
	switch {
	case msg.err != nil:
		delete(m.voices.asked, msg.learning)
		m.notify(display.ErrorText(msg.err, m.glyphs), canvas.Bad)
	case msg.text != "":
		if msg.learning != "" {
			m.o.Voices = m.o.Memory.Folder() // which the help shows
		}
		m.notify(msg.text, canvas.Good)
	}
}
