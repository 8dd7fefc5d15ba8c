package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// Bounds of the voiceprints of a request.
const (
	MaxVoiceprints     = 50
	MaxVoiceprint      = 20_000 // characters
	MaxVoiceprintLabel = 100    // characters
)

// LabelledVoiceprint is the voiceprint of a person under the label that a match
// with that person has.
type LabelledVoiceprint struct {
	Label      string `json:"label"`
	Voiceprint string `json:"voiceprint"`
}

// Matching is how speakers are matched with voiceprints.
type Matching struct {
	// Threshold is the confidence that a match needs, 0 to 100; nil = the
	// service's default.
	Threshold *float64 `json:"threshold,omitempty"`
	// Exclusive says that a person matches one label at most; nil = true.
	Exclusive *bool `json:"exclusive,omitempty"`
}

// Enrolment is the people whom a stream recognises: the fields voiceprints and
// matching of POST /v1/live.
type Enrolment struct {
	Voiceprints []LabelledVoiceprint `json:"voiceprints,omitempty"`
	Matching    *Matching            `json:"matching,omitempty"`
}

// ParseEnrolment takes the fields voiceprints and matching from a JSON object that
// ValidateInput has accepted. shown is the object without the voiceprints
// themselves, which are personal data and are not returned; their labels stay.
// Null means that a field is not given. What a voiceprint contains is not checked.
func ParseEnrolment(input json.RawMessage) (e Enrolment, shown json.RawMessage, bad *ValidationErrorResponse) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields)
	if raw := fields["matching"]; given(raw) {
		if e.Matching, bad = parseMatching(raw); bad != nil {
			return e, nil, bad
		}
	}
	raw, named := fields["voiceprints"]
	if !given(raw) {
		if named { // of fields of one name the last counts, and an earlier one may have voiceprints
			input, _ = json.Marshal(fields)
		}
		return e, input, nil
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return e, nil, Invalid("voiceprints", voiceprintsForm)
	}
	if len(list) == 0 || len(list) > MaxVoiceprints {
		return e, nil, Invalid("voiceprints", "must have 1 to %d entries", MaxVoiceprints)
	}
	labels := map[string]bool{}
	var left []map[string]string
	for i, entry := range list {
		field := fmt.Sprintf("voiceprints[%d]", i)
		var v LabelledVoiceprint
		if readFields(entry, map[string]any{"label": &v.Label, "voiceprint": &v.Voiceprint}) != nil {
			return e, nil, Invalid("voiceprints", voiceprintsForm)
		}
		switch {
		case !given(entry["label"]):
			return e, nil, Invalid(field+".label", "is required")
		case CheckVoiceprintLabel(v.Label) != nil:
			return e, nil, Invalid(field+".label", "%v", CheckVoiceprintLabel(v.Label))
		case labels[v.Label]:
			return e, nil, Invalid(field+".label", "is the label of another voiceprint")
		case v.Voiceprint == "":
			return e, nil, Invalid(field+".voiceprint", "is required")
		case utf8.RuneCountInString(v.Voiceprint) > MaxVoiceprint:
			return e, nil, Invalid(field+".voiceprint", "must have at most %d characters", MaxVoiceprint)
		}
		labels[v.Label] = true
		e.Voiceprints = append(e.Voiceprints, v)
		left = append(left, map[string]string{"label": v.Label})
	}
	fields["voiceprints"], _ = json.Marshal(left) // strings and valid JSON always marshal
	shown, _ = json.Marshal(fields)
	return e, shown, nil
}

const voiceprintsForm = "must be an array of objects with the strings label and voiceprint"

// readFields reads fields by their exact names; a struct would also take names in other
// letters, such as "Label".
func readFields(fields map[string]json.RawMessage, to map[string]any) error {
	for name, value := range to {
		if raw := fields[name]; given(raw) {
			if err := json.Unmarshal(raw, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func given(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

func parseMatching(raw json.RawMessage) (*Matching, *ValidationErrorResponse) {
	var m Matching
	var fields map[string]json.RawMessage
	switch {
	case json.Unmarshal(raw, &fields) != nil:
		return nil, Invalid("matching", "must be an object with the number threshold and the boolean exclusive")
	case readFields(fields, map[string]any{"threshold": &m.Threshold}) != nil, m.Threshold != nil && (*m.Threshold < 0 || *m.Threshold > 100):
		return nil, Invalid("matching.threshold", "must be a number from 0 to 100")
	case readFields(fields, map[string]any{"exclusive": &m.Exclusive}) != nil:
		return nil, Invalid("matching.exclusive", "must be true or false")
	}
	return &m, nil
}

// beginsWithSpeaker also matches letters that are another case of these, such as the long s.
var beginsWithSpeaker = regexp.MustCompile(`\A(?i:SPEAKER_)`)

// CheckVoiceprintLabel checks the label of a voiceprint: 1 to MaxVoiceprintLabel
// printable characters and single spaces that do not begin with SPEAKER_ in any case.
func CheckVoiceprintLabel(label string) error {
	switch n := utf8.RuneCountInString(label); {
	case n < 1 || n > MaxVoiceprintLabel:
		return fmt.Errorf("must have 1 to %d characters", MaxVoiceprintLabel)
	case Clean(label, MaxVoiceprintLabel) != label:
		return fmt.Errorf("must have printable characters and single spaces only, and no space at its ends")
	case beginsWithSpeaker.MatchString(label):
		return fmt.Errorf("may not begin with SPEAKER_")
	}
	return nil
}
