package jobs

import (
	"fmt"

	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
)

// People are the people of an enrolment for the engine, and how it matches them. A
// voiceprint of another engine version, on a cluster while it is updated, is an error.
func People(e protocol.Enrolment) (people []voiceprint.Person, m voiceprint.Matching, err error) {
	for _, p := range e.Voiceprints {
		v, err := voiceprint.Parse(p.Voiceprint)
		if err != nil {
			return nil, m, fmt.Errorf("voiceprint %q: %w", p.Label, err)
		}
		people = append(people, voiceprint.Person{Label: p.Label, Voiceprint: v})
	}
	m.Threshold = voiceprint.DefaultThreshold
	if e.Matching != nil {
		if t := e.Matching.Threshold; t != nil {
			m.Threshold = *t / 100
		}
		m.Shared = e.Matching.Exclusive != nil && !*e.Matching.Exclusive
	}
	return people, m, nil
}
