package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseJob(t *testing.T) {
	const nulls = `"model":null,"numSpeakers":null,"minSpeakers":null,"maxSpeakers":null,"confidence":null,"exclusive":null,"webhook":null,"unknown":7`
	r, warnings, bad := ParseJob(JobDiarize, []byte(`{"url":"media://a",`+nulls+`}`))
	if want := (JobRequest{URL: "media://a"}); bad != nil || len(warnings) > 0 || r.URL != want.URL || r.NumSpeakers != 0 || r.Confidence || r.Webhook != "" {
		t.Errorf("nulls: %+v %v %v", r, warnings, bad)
	}
	r, warnings, bad = ParseJob(JobDiarize, []byte(`{"url":"media://a","numSpeakers":3.0,"maxSpeakers":99,"confidence":true,"transcription":true,"webhook":"https://example.com/x"}`))
	if bad != nil || len(warnings) > 0 || r.NumSpeakers != 3 || r.MaxSpeakers != MaxJobSpeakers || !r.Confidence || !r.Transcription || r.Webhook == "" {
		t.Errorf("%+v %v %v", r, warnings, bad)
	}
	if _, warnings, bad = ParseJob(JobDiarize, []byte(`{"url":"media://a","numSpeakers":1e30}`)); bad != nil || !strings.Contains(fmt.Sprint(warnings), "numSpeakers is 1e30,") {
		t.Errorf("%v %v", warnings, bad)
	}
	if r, warnings, bad = ParseJob(JobDiarize, []byte(`{"url":"media://a","minSpeakers":21}`)); bad != nil || len(warnings) != 1 || r.MinSpeakers != 20 {
		t.Errorf("%+v %v %v", r, warnings, bad)
	}
	for config, want := range map[string]string{`null`: "", `{}`: "", `{"model":null}`: "", `{"model":"parakeet","language":"en"}`: "parakeet"} {
		if r, _, bad = ParseJob(JobDiarize, []byte(`{"url":"media://a","transcription":true,"transcriptionConfig":`+config+`}`)); bad != nil || r.WordsModel != want {
			t.Errorf("%s: %+v %v", config, r, bad)
		}
	}
	r, _, _ = ParseJob(JobDiarize, []byte(`{"url":"media://a","model":"precision-2","transcription":true,"transcriptionConfig":{"model":"parakeet"}}`))
	if raw, err := json.Marshal(r); err != nil || r.Model != "precision-2" || strings.Contains(string(raw), "precision") || strings.Contains(string(raw), "parakeet") {
		t.Errorf("stored as %s, %v", raw, err) // a model may be too long to store
	}
	const people = `"voiceprints":[{"label":"a","voiceprint":"x"}]`
	for flag, want := range map[string]int{"true": 1, "false": 0, "null": 0} {
		if r, warnings, bad = ParseJob(JobIdentify, []byte(`{"url":"media://a",`+people+`,"transcription":`+flag+`}`)); bad != nil || r.Transcription || len(warnings) != want {
			t.Errorf("identify with transcription %s: %+v %v %v", flag, r, warnings, bad)
		}
	}
	for _, c := range []struct{ body, field string }{
		{`[]`, "body"}, {``, "url"}, {`{"url":""}`, "url"}, {`{"url":"ftp://a"}`, "url"}, {`{"url":"media://a b"}`, "url"},
		{`{"url":"http://u:p@a/x"}`, "url"}, {`{"url":"https:///x"}`, "url"}, {`{"url":"http://a:99999/x"}`, "url"},
		{`{"url":"media://a","model":1}`, "model"},
		{`{"url":"media://a","numSpeakers":0}`, "numSpeakers"}, {`{"url":"media://a","numSpeakers":-1}`, "numSpeakers"},
		{`{"url":"media://a","numSpeakers":1.5}`, "numSpeakers"}, {`{"url":"media://a","numSpeakers":"2"}`, "numSpeakers"},
		{`{"url":"media://a","numSpeakers":true}`, "numSpeakers"},
		{`{"url":"media://a","minSpeakers":3,"maxSpeakers":2}`, "minSpeakers"},
		{`{"url":"media://a","minSpeakers":30,"maxSpeakers":25}`, "minSpeakers"},
		{`{"url":"media://a","numSpeakers":3,"maxSpeakers":2}`, "numSpeakers"},
		{`{"url":"media://a","numSpeakers":3,"minSpeakers":4}`, "numSpeakers"},
		{`{"url":"media://a","exclusive":"yes"}`, "exclusive"},
		{`{"url":"media://a","transcription":1}`, "transcription"},
		{`{"url":"media://a","transcriptionConfig":"whisper"}`, "transcriptionConfig"},
		{`{"url":"media://a","transcriptionConfig":{"model":1}}`, "transcriptionConfig.model"},
		{`{"url":"media://a","webhook":"example.com"}`, "webhook"},
		{`{"url":"media://a","webhook":"media://a"}`, "webhook"},
		{`{"url":"media://a","webhook": ""}`, "webhook"},
		{`{"url":"media://a","webhookStatusOnly":1}`, "webhookStatusOnly"},
	} {
		if _, _, bad := ParseJob(JobDiarize, []byte(c.body)); bad == nil || bad.Errors[0].Field != c.field {
			t.Errorf("%s: %+v, want the field %s", c.body, bad, c.field)
		}
	}
}
