package localserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"hubbub/localserver/engine/voiceprint"
	"hubbub/localserver/stream"
	"hubbub/protocol"
)

// maxLiveBody bounds the body of POST /v1/live: as many voiceprints as are
// allowed, and what any other request may have.
const maxLiveBody = maxBody + protocol.MaxVoiceprints*(protocol.MaxVoiceprint+1024)

// checkVoiceprints returns what is wrong with the voiceprints of a request.
func checkVoiceprints(e protocol.Enrolment) *protocol.ValidationErrorResponse {
	for i, p := range e.Voiceprints {
		if _, err := voiceprint.Parse(p.Voiceprint); err != nil {
			text := "is not a voiceprint, or it is damaged"
			if errors.Is(err, voiceprint.ErrOutdated) {
				text = "was made by another engine version; make it again from speech"
			}
			return protocol.Invalid(fmt.Sprintf("voiceprints[%d].voiceprint", i), "%s", text)
		}
	}
	return nil
}

// recogniser is a Diarizer that recognises people: engine.Engine.
type recogniser interface {
	Recognise(people []voiceprint.Person, m voiceprint.Matching)
}

// recognise makes a diarizer recognise the people of a stored enrolment. One of
// another engine version, on a cluster while it is updated, is an error.
func recognise(d stream.Diarizer, enrolment json.RawMessage) error {
	r, ok := d.(recogniser)
	if !ok || len(enrolment) == 0 {
		return nil
	}
	var e protocol.Enrolment
	if err := json.Unmarshal(enrolment, &e); err != nil {
		return fmt.Errorf("the enrolment of a stream cannot be read: %w", err)
	}
	var people []voiceprint.Person
	for _, p := range e.Voiceprints {
		v, err := voiceprint.Parse(p.Voiceprint)
		if err != nil {
			return fmt.Errorf("voiceprint %q: %w", p.Label, err)
		}
		people = append(people, voiceprint.Person{Label: p.Label, Voiceprint: v})
	}
	m := voiceprint.Matching{Threshold: voiceprint.DefaultThreshold}
	if e.Matching != nil {
		if t := e.Matching.Threshold; t != nil {
			m.Threshold = *t / 100
		}
		m.Shared = e.Matching.Exclusive != nil && !*e.Matching.Exclusive
	}
	r.Recognise(people, m)
	return nil
}
