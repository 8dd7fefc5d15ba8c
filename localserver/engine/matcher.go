package engine

import (
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/voiceprint"
)

const (
	// minMatchSeconds is the speech that a speaker needs to be matched: of less, the
	// embedding says too little.
	minMatchSeconds = 1.2
	// matchWindows is in how many consecutive windows, 0.2 s apart, a match must be
	// the best. Every window is another chance of a wrong match.
	matchWindows = 5
)

// matcher decides which of the enrolled people the speakers of the session are. A
// decision is final: it may have been announced.
type matcher struct {
	people   []voiceprint.Person
	matching voiceprint.Matching
	name     [MaxSpeakers]string // "" = not matched

	voices      [MaxSpeakers]clustering.Speech // as the last window left them
	previous    [MaxSpeakers]int               // 1 + the person whom the last window suggested
	windows     [MaxSpeakers]int               // consecutive windows that suggested the same
	confidences []float64
}

// update matches the speakers that have none, after the clusterer was given a
// window.
func (m *matcher) update(c *clustering.Clusterer, w *clustering.Window) {
	if len(m.people) == 0 {
		return
	}
	for k := range c.Speakers() {
		if m.name[k] != "" {
			continue
		}
		best := m.suggest(c, w, k)
		if m.previous[k] != best+1 {
			m.previous[k], m.windows[k] = best+1, 0
		}
		if m.windows[k]++; best >= 0 && m.windows[k] >= matchWindows {
			m.name[k] = m.people[best].Label
		}
	}
}

// suggest is the person whom speaker k most likely is, -1 for nobody. Without new
// speech of the speaker it is whom the last window suggested.
func (m *matcher) suggest(c *clustering.Clusterer, w *clustering.Window, k int) int {
	free := func(i int) bool { return m.matching.Shared || !m.taken(m.people[i].Label) }
	var voice clustering.Speech
	voice.Embedding, voice.Duration = c.Voice(w, k)
	if best := m.previous[k] - 1; voice == m.voices[k] && (best < 0 || free(best)) {
		return best
	}
	m.voices[k] = voice
	if voice.Duration < minMatchSeconds {
		return -1
	}
	m.confidences = voiceprint.Confidences(&voice.Embedding, voice.Duration, m.people, m.confidences)
	best, _ := voiceprint.Best(m.confidences, m.matching.Threshold, free)
	return best
}

// taken reports whether a speaker has been matched with the person.
func (m *matcher) taken(label string) bool {
	for _, has := range m.name {
		if has == label {
			return true
		}
	}
	return false
}

// restore continues with the matches of an earlier stream, as far as their people
// are enrolled in this one.
func (m *matcher) restore(names [MaxSpeakers]string) {
	for k, name := range names {
		for i := range m.people {
			if m.people[i].Label == name {
				m.name[k] = name
			}
		}
	}
}
