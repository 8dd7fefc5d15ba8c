package localserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"hubbub/localserver/engine/voiceprint"
	"hubbub/localserver/jobs"
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

// enroller is a Diarizer that recognises people: engine.Engine.
type enroller interface {
	Enrol(people []voiceprint.Person, m voiceprint.Matching)
}

// enrol makes a diarizer enrol the people of a stored enrolment.
func enrol(d stream.Diarizer, enrolment json.RawMessage) error {
	r, ok := d.(enroller)
	if !ok || len(enrolment) == 0 {
		return nil
	}
	var e protocol.Enrolment
	if err := json.Unmarshal(enrolment, &e); err != nil {
		return fmt.Errorf("the enrolment of a stream cannot be read: %w", err)
	}
	people, matching, err := jobs.People(e)
	if err == nil {
		r.Enrol(people, matching)
	}
	return err
}
