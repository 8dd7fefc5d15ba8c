package protocol

import (
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
	f := fieldsOf(input)
	e = f.enrolment()
	if bad = f.invalid(); bad != nil {
		return e, nil, bad
	}
	if _, named := f.values["voiceprints"]; !named {
		return e, input, nil
	}
	// Of fields of one name the last counts, which may be null; an earlier one may have
	// voiceprints.
	if f.given("voiceprints") {
		var left []map[string]string
		for _, v := range e.Voiceprints {
			left = append(left, map[string]string{"label": v.Label})
		}
		f.values["voiceprints"], _ = json.Marshal(left) // strings and valid JSON always marshal
	}
	shown, _ = json.Marshal(f.values)
	return e, shown, nil
}

const voiceprintsForm = "must be an array of objects with the strings label and voiceprint"

func (f fields) enrolment() (e Enrolment) {
	if m := read[map[string]json.RawMessage](f, "matching", "must be an object with the number threshold and the boolean exclusive"); m != nil {
		e.Matching = fields{*m, "matching.", f.errors}.matching()
	}
	list := read[[]map[string]json.RawMessage](f, "voiceprints", voiceprintsForm)
	if list == nil {
		return e
	}
	if len(*list) == 0 || len(*list) > MaxVoiceprints {
		f.refuse("voiceprints", "must have 1 to %d entries", MaxVoiceprints)
		return e
	}
	labels := map[string]bool{}
	for i, values := range *list {
		entry := fields{values, fmt.Sprintf("voiceprints[%d].", i), f.errors}
		v := LabelledVoiceprint{entry.required("label"), entry.required("voiceprint")}
		switch err := CheckVoiceprintLabel(v.Label); {
		case v.Label == "": // it was refused
		case err != nil:
			entry.refuse("label", "%v", err)
		case labels[v.Label]:
			entry.refuse("label", "is the label of another voiceprint")
		}
		labels[v.Label] = true
		if utf8.RuneCountInString(v.Voiceprint) > MaxVoiceprint {
			entry.refuse("voiceprint", "must have at most %d characters", MaxVoiceprint)
		}
		e.Voiceprints = append(e.Voiceprints, v)
	}
	return e
}

func (f fields) matching() *Matching {
	const wrong = "must be a number from 0 to 100"
	m := &Matching{read[float64](f, "threshold", wrong), read[bool](f, "exclusive", notFlag)}
	if t := m.Threshold; t != nil && (*t < 0 || *t > 100) {
		f.refuse("threshold", wrong)
	}
	return m
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
