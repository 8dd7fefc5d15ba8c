package engine

import (
	"hubbub/localserver/engine/clustering"
	"hubbub/localserver/engine/voiceprint"
)

const (
	// minMatchSeconds is the speech that a speaker needs to be matched: of less, the
	// embedding says too little.
	minMatchSeconds = 1.2
	// matchWindows is in how many consecutive windows, 0.2 s apart, another decision
	// must be the better one before the match changes. Every window is another chance
	// of a wrong match.
	matchWindows = 5
	// matchHysteresis is how far below the threshold the confidence in a match may
	// fall before it is withdrawn. Without it, a confidence near the threshold would
	// make a name come and go.
	matchHysteresis = 0.15
)

// matcher decides which of the enrolled people the speakers of the session are. The
// more speech there is, the better the decision, so a match may change.
type matcher struct {
	people   []voiceprint.Person
	matching voiceprint.Matching
	name     [MaxSpeakers]string // "" = not matched

	merged      [MaxSpeakers]bool                      // into another speaker
	centroids   [MaxSpeakers]clustering.TimedEmbedding // as the last window left them
	suggested   [MaxSpeakers]string                    // by the last window
	windows     [MaxSpeakers]int                       // consecutive windows that suggested the same
	confidences []float64
}

// update matches the speakers after the clusterer was given a window.
func (m *matcher) update(c *clustering.Clusterer, w *clustering.Window) {
	if len(m.people) == 0 {
		return
	}
	for k := range c.Speakers() {
		m.merged[k] = c.Merged(k)
	}
	for k := range c.Speakers() {
		m.decide(k, m.suggest(c, w, k))
	}
}

// decide makes what enough consecutive windows suggested the match of speaker k.
func (m *matcher) decide(k int, suggested string) {
	if m.suggested[k] != suggested {
		m.suggested[k], m.windows[k] = suggested, 0
	}
	if m.windows[k]++; m.windows[k] >= matchWindows {
		m.name[k] = suggested
	}
}

// suggest is the label of the person whom speaker k most likely is, "" for nobody.
// Without new speech of the speaker it is whom the last window suggested.
func (m *matcher) suggest(c *clustering.Clusterer, w *clustering.Window, k int) string {
	centroid := c.Centroid(w, k)
	if same := m.suggested[k]; centroid == m.centroids[k] && (m.matching.Shared || !m.taken(same, k)) {
		return same
	}
	m.centroids[k] = centroid
	if centroid.Duration < minMatchSeconds {
		return m.name[k]
	}
	m.confidences = voiceprint.Confidences(&centroid.Embedding, centroid.Duration, m.people, m.confidences)
	return m.choose(k)
}

// choose is the label of the best person for speaker k by the confidences: who
// reaches the threshold, else the present match as long as it stays near.
func (m *matcher) choose(k int) string {
	free := func(i int) bool { return m.matching.Shared || !m.taken(m.people[i].Label, k) }
	if best, _ := voiceprint.Best(m.confidences, m.matching.Threshold, free); best >= 0 {
		return m.people[best].Label
	}
	for i, confidence := range m.confidences {
		if m.people[i].Label == m.name[k] && confidence >= m.matching.Threshold-matchHysteresis {
			return m.name[k]
		}
	}
	return ""
}

// taken reports whether a speaker other than k is matched with the person. One that
// was merged keeps its match for the turns that it had, but talks no more.
func (m *matcher) taken(label string, k int) bool {
	for other, has := range m.name {
		if other != k && has == label && has != "" && !m.merged[other] {
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
				m.name[k], m.suggested[k] = name, name
			}
		}
	}
}
