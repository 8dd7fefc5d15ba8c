package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"hubbub/protocol/testkit"
)

func TestLiveStatusOnTheWire(t *testing.T) {
	at := FormatTime(time.Date(2025, 3, 4, 6, 6, 7, 999, time.FixedZone("", 3600)))
	for _, c := range []struct {
		in   LiveStatus
		want string
	}{
		{LiveStatus{ID: "a", Status: StatusCreated, Input: json.RawMessage(`{}`)},
			`{"id":"a","startedAt":null,"completedAt":null,"input":{},"status":"created"}`},
		{LiveStatus{ID: "a", Status: StatusRunning, StartedAt: &at, Input: json.RawMessage(`{"x":1}`)},
			`{"id":"a","startedAt":"2025-03-04T05:06:07Z","completedAt":null,"input":{"x":1},"status":"running"}`},
	} {
		got, err := json.Marshal(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
		}
		var back LiveStatus
		testkit.NoError(t, json.Unmarshal(got, &back))
		if again, _ := json.Marshal(back); string(again) != c.want {
			t.Errorf("read back as %s", again)
		}
	}
}

func TestValidateInput(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "{}",
		" \n":                   "{}",
		"{}":                    "{}",
		` { "a" : [1, "b c"] }`: `{"a":[1,"b c"]}`,
	} {
		got, bad := ValidateInput([]byte(in))
		if bad != nil || string(got) != want {
			t.Errorf("%q: %s, %+v", in, got, bad)
		}
	}
	for _, in := range []string{"null", "[]", "7", `"x"`, "{", "{}{}", "{} x", "{\"a\":\"\xff\"}", "\ufeff{}"} {
		got, bad := ValidateInput([]byte(in))
		if bad == nil || got != nil {
			t.Errorf("%q was taken as %s", in, got)
			continue
		}
		if bad.Message == "" || len(bad.Errors) != 1 || bad.Errors[0].Field != "body" || bad.Errors[0].Message == "" {
			t.Errorf("%q: %+v", in, bad)
		}
	}
}

// What is shown of the input of a stream never has a voiceprint, also if a field is
// there twice.
func TestShownInputHasNoVoiceprint(t *testing.T) {
	const people = `"voiceprints":[{"label":"Sam","voiceprint":"secret"}]`
	for input, people := range map[string]int{
		`{` + people + `,"note":"kept"}`:                                         1,
		`{` + people + `,"voiceprints":null,"note":"kept"}`:                      0,
		`{"voiceprints":null,` + people + `,"note":"kept"}`:                      1,
		`{` + people + `,"note":"kept",` + people + `}`:                          1,
		`{"voiceprints":[{"voiceprint":"secret"}],"note":"kept",` + people + `}`: 1,
	} {
		e, shown, bad := ParseEnrolment([]byte(input))
		if bad != nil || len(e.Voiceprints) != people || strings.Contains(string(shown), "secret") || !strings.Contains(string(shown), "kept") {
			t.Errorf("%s: %v, shown as %s", input, bad, shown)
		}
	}
}

// Names in other letters are other fields, which are ignored.
func TestFieldsOfEnrolmentsAreExact(t *testing.T) {
	e, _, bad := ParseEnrolment([]byte(`{"voiceprints":[{"label":"Sam","voiceprint":"v","Label":"Rick","VOICEPRINT":7}],
		"matching":{"threshold":50,"Threshold":500,"EXCLUSIVE":"no"}}`))
	if bad != nil || !slices.Equal(e.Voiceprints, []LabelledVoiceprint{{"Sam", "v"}}) || *e.Matching.Threshold != 50 || e.Matching.Exclusive != nil {
		t.Errorf("%+v, %v", e, bad)
	}
	if _, _, bad = ParseEnrolment([]byte(`{"matching":{"threshold":100.1}}`)); bad == nil || bad.Errors[0] != (ValidationError{"matching.threshold", "must be a number from 0 to 100"}) {
		t.Errorf("%v", bad)
	}
	_, _, bad = ParseEnrolment([]byte(`{"voiceprints":[{"Label":"Sam","voiceprint":"v"}]}`))
	if bad == nil || bad.Errors[0] != (ValidationError{"voiceprints[0].label", "is required"}) {
		t.Errorf("%v", bad)
	}
	_, _, bad = ParseEnrolment([]byte(`{"matching":{"exclusive":1},"voiceprints":[{"label":"Sam","voiceprint":7},{"label":"Sam","voiceprint":null}]}`))
	want := []ValidationError{{"matching.exclusive", "must be true or false"}, {"voiceprints[0].voiceprint", "must be a string"},
		{"voiceprints[1].voiceprint", "is required"}, {"voiceprints[1].label", "is the label of another voiceprint"}}
	if bad == nil || !slices.Equal(bad.Errors, want) {
		t.Errorf("%v", bad)
	}
}

func TestVoiceprintLabel(t *testing.T) {
	for label, valid := range map[string]bool{
		"Sam": true, "SPEAKER": true, "My SPEAKER_00": true,
		"SPEAKER_00": false, "speaker_x": false, "SpEaKeR_": false, "\u017fPEAKER_00": false, "SPEA\u212aER_00": false,
	} {
		if err := CheckVoiceprintLabel(label); (err == nil) != valid {
			t.Errorf("%q: %v", label, err)
		}
	}
}

func TestMediaLocation(t *testing.T) {
	media := func(key string) string { return `{"url":"media://` + key + `"}` }
	for _, in := range []string{media("a"), media("live/0-9_A.rttm"), media(strings.Repeat("x", 255-len("media://"))), `{"url":"media://a","more":1}`} {
		if m, bad := ParseMediaLocation([]byte(in)); bad != nil || !strings.HasPrefix(m.URL, "media://") {
			t.Errorf("%s: %+v", in, bad)
		}
	}
	for in, field := range map[string]string{
		``: "body", `[]`: "body", `{`: "body",
		`{}`: "url", `{"url":null}`: "url", `{"url":7}`: "url", `{"url":""}`: "url", `{"URL":"media://a"}`: "url",
		media(""): "url", media("a b"): "url", media("ä"): "url", media(`a\n`): "url", `{"url":"http://a"}`: "url", `{"url":" media://a"}`: "url",
		media(strings.Repeat("x", 256-len("media://"))): "url",
	} {
		_, bad := ParseMediaLocation([]byte(in))
		if bad == nil || len(bad.Errors) != 1 || bad.Errors[0].Field != field {
			t.Errorf("%s: %+v, want an error about %s", in, bad, field)
		}
	}
}

func TestParseClientMessage(t *testing.T) {
	for _, in := range []string{EndOfStreamMessage, ` { "type" : "end_of_stream" , "x": 1 } `} {
		if err := ParseClientMessage([]byte(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{``, `hello`, `[]`, `null`, `{}`, `{"Type":"end_of_stream"}`, `{"type":1}`, `{"type":null}`, `{"type":"END_OF_STREAM"}`,
		`{"type":"end_of_stream"`, `"end_of_stream"`} {
		if err := ParseClientMessage([]byte(in)); err == nil {
			t.Errorf("%s is valid", in)
		}
	}
}
