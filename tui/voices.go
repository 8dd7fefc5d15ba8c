package tui

import (
	"hubbub/tui/canvas"
	"hubbub/tui/display"
)

// offerToRemember asks once, after a speaker got a name, whether to remember the
// voice. It does not ask about a voice under the name by which it was recognised.
func (m *model) offerToRemember(label string) {
	if m.o.Memory == nil || !m.o.Memory.Asks() || m.offered[label] || m.state.Watching {
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
	m.offered[label] = true
	text := "remember the voice of " + p.Name + ", on this machine only?"
	if m.o.Memory.Stored(p.Name) {
		text = "a voice of " + p.Name + " is stored already: replace it with this one?"
	}
	m.question = &voiceQuestion{label, p.Name, text, p.Style}
}

// voiceQuestion asks whether to remember the voice of a speaker.
type voiceQuestion struct {
	label, name string
	text        string
	style       canvas.Style
}

// questionKey is for the keys while the question is asked. It reports whether the key was for
// it. Enter is no answer: it may be typed once too often after a name. Another key that means
// something ends the question and keeps its meaning: what is typed without having seen the
// question, such as the next name, must not be lost in it.
func (m *model) questionKey(name string) (taken bool) {
	q := m.question
	switch name {
	case "y":
		m.remember(q.label, q.name)
	case "N":
		m.neverRemember()
	case "n", "esc":
	default:
		if name == "enter" || m.bound(name) == nil {
			return true
		}
		m.question = nil
		return false
	}
	m.question = nil
	return true
}

func (m *model) remember(label, name string) {
	m.runAsync("voice of "+label, "learning the voice of "+name, func() (string, error) { return m.o.Memory.Remember(label) }, func(err error) {
		m.corrected = -1 // the name may have changed meanwhile
		if err != nil {
			delete(m.offered, label)
			return
		}
		m.o.Voices = m.o.Memory.Folder() // which the help shows
	})
}

func (m *model) neverRemember() {
	text := "hubbub does not ask again; " + m.keyOf("remember") + " remembers a voice"
	m.runAsync("never remember", "", func() (string, error) { return text, m.o.Memory.Never() }, nil)
}

// correctVoices applies changed names to what was learnt in this session.
func (m *model) correctVoices() {
	_, revision := m.annotations.Load()
	if m.o.Memory != nil && len(m.running) == 0 && m.corrected != revision {
		m.runAsync("correct voices", "", m.o.Memory.Correct, func(error) { m.corrected = revision })
	}
}
