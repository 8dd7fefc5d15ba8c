package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubbub/protocol/testkit"
)

func TestParseEvent(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      Event // without Raw
		bad       string
	}{
		{"start", `{"type":"diarization_speaker_start","data":{"timestamp":1.24,"speaker":"SPEAKER_00"}}`,
			Event{Type: TypeSpeakerStart, Timestamp: 1.24, Speaker: "SPEAKER_00"}, ""},
		{"end with more fields", `{"type":"diarization_speaker_end","data":{"timestamp":0,"speaker":"","x":1},"y":[]}`,
			Event{Type: TypeSpeakerEnd}, ""},
		{"error", `{"type":"error","message":"Invalid chunk size"}`,
			Event{Type: TypeError, Message: "Invalid chunk size"}, ""},
		{"start with fields of other types", `{"type":"diarization_speaker_start","data":{"timestamp":1,"speaker":"A"},"message":{"a":1}}`,
			Event{Type: TypeSpeakerStart, Timestamp: 1, Speaker: "A"}, ""},
		{"error with fields of other types", `{"type":"error","message":"Invalid chunk size","data":"6400"}`,
			Event{Type: TypeError, Message: "Invalid chunk size"}, ""},
		{"unknown", `{"type":"transcript","data":7,"message":{"a":1}}`, Event{Type: "transcript"}, ""},
		{"no type", `{"data":{}}`, Event{}, "no type"},
		{"type of another kind", `{"type":3}`, Event{}, "not the JSON of an event"},
		{"array", `[]`, Event{}, "not the JSON of an event"},
		{"no JSON", `hello`, Event{}, "not the JSON of an event"},
		{"nothing", ``, Event{}, "not the JSON of an event"},
		{"start without data", `{"type":"diarization_speaker_start"}`, Event{Type: TypeSpeakerStart}, "without data"},
		{"start without speaker", `{"type":"diarization_speaker_start","data":{"timestamp":1}}`, Event{Type: TypeSpeakerStart}, "without data"},
		{"null timestamp", `{"type":"diarization_speaker_start","data":{"timestamp":null,"speaker":"A"}}`, Event{Type: TypeSpeakerStart}, "without data"},
		{"timestamp as text", `{"type":"diarization_speaker_end","data":{"timestamp":"1","speaker":"A"}}`, Event{Type: TypeSpeakerEnd}, "not as specified: unexpected string in data.timestamp"},
		{"array", `["diarization_speaker_end"]`, Event{}, "not the JSON of an event: unexpected array"},
		{"timestamp beyond floats", `{"type":"diarization_speaker_end","data":{"timestamp":1e999,"speaker":"A"}}`, Event{Type: TypeSpeakerEnd}, "not as specified"},
		{"negative", `{"type":"diarization_speaker_end","data":{"timestamp":-1,"speaker":"A"}}`, Event{Type: TypeSpeakerEnd}, "impossible timestamp -1"},
		{"beyond all sessions", `{"type":"diarization_speaker_start","data":{"timestamp":1e300,"speaker":"A"}}`, Event{Type: TypeSpeakerStart}, "impossible timestamp 1e+300"},
		{"error without message", `{"type":"error"}`, Event{Type: TypeError}, "without a message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseEvent([]byte(c.raw))
			if (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
				t.Fatalf("error %v, want %q", err, c.bad)
			}
			if (got.Err == "") != (err == nil) {
				t.Errorf("Err = %q beside error %v", got.Err, err)
			}
			if !json.Valid(got.Raw) {
				t.Errorf("Raw is no JSON: %s", got.Raw)
			}
			if got.Type != c.want.Type || got.Timestamp != c.want.Timestamp || got.Speaker != c.want.Speaker || got.Message != c.want.Message {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestRawIsOneLineAsReceived(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"x", "n": 1.50}`:        `{"type":"x", "n": 1.50}`, // not rewritten
		"{\"type\":\r\n \"x\"}\n":        `{"type":   "x"}`,
		"two\nlines":                     `"two\nlines"`,
		"{\"type\":\"x\u009b2J\u202e\"}": `{"type":"x\u009b2J\u202e"}`,      // a terminal would obey these
		"{\"type\":\"x\",\"s\":\"\n\"}":  `"{\"type\":\"x\",\"s\":\"\n\"}"`, // a bare line break in a string is no JSON
	} {
		e, _ := ParseEvent([]byte(in))
		testkit.Equal(t, string(e.Raw), want, "Raw of", in, e.Raw)
	}
}

func TestBuiltEventsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]string{TypeSpeakerStart, TypeSpeakerEnd}).Draw(t, "type")
		built := NewSpeakerEvent(typ, rapid.Float64Range(0, MaxTimestamp).Draw(t, "at"), rapid.String().Draw(t, "speaker"))
		read, err := ParseEvent(built.Raw)
		if err != nil || read.Type != built.Type || read.Timestamp != built.Timestamp || read.Speaker != built.Speaker {
			t.Fatalf("%s was read as %+v, %v", built.Raw, read, err)
		}
		problem := NewErrorEvent(rapid.String().Draw(t, "message"))
		if read, err = ParseEvent(problem.Raw); err != nil || read.Message != problem.Message {
			t.Fatalf("%s was read as %+v, %v", problem.Raw, read, err)
		}
	})
}

func TestSpeakerEventOnTheWire(t *testing.T) {
	got := string(NewSpeakerEvent(TypeSpeakerStart, 1.23951, "SPEAKER_00").Raw)
	if want := `{"type":"diarization_speaker_start","data":{"timestamp":1.24,"speaker":"SPEAKER_00"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A message of this kind is read only when it is whole.
func TestParseStreamState(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"type":"stream_state","data":{"status":"running","timestamp":2.5}}`:       true,
		`{"type":"diarization_speaker_start","data":{"timestamp":1,"speaker":"A"}}`: false,
		`{"type":"stream_state"}`: false, `{"type":"stream_state","data":{"timestamp":-1}}`: false,
		`{"type":"stream_state","data":{"timestamp":"x"}}`: false, `{"type":"stream_state","data":{"timestamp":1e99}}`: false, `[`: false,
	} {
		e, _ := ParseEvent([]byte(raw))
		if (e.State != nil) != want {
			t.Errorf("%s: %+v", raw, e.State)
		}
	}
	e, err := ParseEvent(NewStreamStateEvent(StreamState{Status: StatusDone, Timestamp: 1.5}).Raw)
	if want := (StreamState{Status: StatusDone, Timestamp: 1.5}); err != nil || e.State == nil || *e.State != want {
		t.Errorf("%+v %v", e.State, err)
	}
}
