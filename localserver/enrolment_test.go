package localserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubbub/localserver/engine/enginetest"
	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

// demoAudio is the first seconds of the demo conversation.
func demoAudio(t testing.TB, seconds int) []float32 {
	t.Helper()
	return enginetest.Demo(t)[:seconds*protocol.SampleRate]
}

func voiceprintOf(t testing.TB, samples []float32) string {
	t.Helper()
	v := testkit.Must(voiceprint.Make(samples))(t)
	return v.String()
}

// TestEnrolledPeopleAreRecognised plays the demo to a stream that knows two of
// its four people.
func TestEnrolledPeopleAreRecognised(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := serve(t, func(o *setup) { o.NewDiarizer, o.Unpaced, o.DataDir = nil, true, dir })
	x := demoAudio(t, 48)
	// Speech of the first two people; the first 30 s are not used.
	slt, rms := voiceprintOf(t, x[417600:476800]), voiceprintOf(t, x[643200:723200])
	body := fmt.Sprintf(`{"note":"kept","matching":null,"voiceprints":[{"label":"Sam","voiceprint":%q},{"label":"Rosa","voiceprint":%q}]}`, slt, rms)
	live := h.createWith(body)
	if got := string(h.status(live.ID).Input); strings.Contains(got, "hubbub-voiceprint") || !strings.Contains(got, "kept") || !strings.Contains(got, "Sam") {
		t.Errorf("input: %.200s", got)
	}
	s := h.openAt(live)
	go s.sendAudio(x)
	events := s.closes(1000)
	matches := map[string]string{}
	for _, e := range events {
		if e.Match == "" {
			if matches[e.Speaker] != "" && e.Type == protocol.TypeSpeakerStart {
				t.Errorf("a start without the match of its speaker: %s", e.Raw)
			}
			continue
		}
		if was := matches[e.Speaker]; was != "" && was != e.Match {
			t.Errorf("%s was %s and is %s", e.Speaker, was, e.Match)
		}
		matches[e.Speaker] = e.Match
	}
	if len(matches) != 2 || matches["SPEAKER_00"] != "Sam" || matches["SPEAKER_01"] != "Rosa" {
		t.Errorf("matches: %v", matches)
	}
	rec, err := h.records.Get(t.Context(), live.ID)
	if err != nil || len(rec.Enrolment) > 0 {
		t.Errorf("after the stream the record has the enrolment %.40s (%v)", rec.Enrolment, err)
	}
	// The store only marks as deleted what it deletes.
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(slt[40:80])) {
			t.Errorf("%s contains a voiceprint", path)
		}
		return err
	})
	testkit.NoError(t, err)
	turns := testkit.Must(h.turns(t.Context(), live.ID))(t)
	for _, turn := range turns {
		testkit.Equal(t, turn.Match, matches[turn.Speaker], "turns.json", turn)
	}
}

// A stream that resumes another one keeps its matches, and has none without voiceprints. The
// threshold of the second stream is one that no new match reaches.
func TestAResumedStreamKeepsItsMatches(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.NewDiarizer, o.Unpaced = nil, true })
	x := demoAudio(t, 32)
	people := testkit.Must(json.Marshal([]protocol.LabelledVoiceprint{{Label: "Sam", Voiceprint: voiceprintOf(t, x[417600:476800])}}))(t)
	play := func(samples []float32, input string) (live protocol.LiveStream, matched, unmatched int) {
		live = h.createWith(input)
		s := h.openAt(live)
		go s.sendAudio(samples)
		events := s.closes(1000)
		for _, e := range events {
			switch {
			case e.Match == "Sam" && e.Speaker == "SPEAKER_00":
				matched++
			case e.Match != "", e.Unmatched && !strings.Contains(input, "voiceprints"):
				t.Errorf("a wrong match: %s", e.Raw)
			case e.Type == protocol.TypeSpeakerStart && e.Speaker == "SPEAKER_00":
				unmatched++
			}
		}
		return live, matched, unmatched
	}
	first, matched, _ := play(x[:25*16000], fmt.Sprintf(`{"voiceprints":%s}`, people))
	if matched == 0 {
		t.Fatal("nobody is recognised in the first stream")
	}
	h.becomes(first.ID, "done")
	again := x[417600:476800]
	second, matched, unmatched := play(again, fmt.Sprintf(`{"resume":%q,"voiceprints":%s,"matching":{"threshold":100}}`, first.ID, people))
	if !second.Resumed || matched == 0 || unmatched > 0 {
		t.Errorf("resumed %v: %d starts with the match, %d without", second.Resumed, matched, unmatched)
	}
	if _, matched, unmatched = play(again, fmt.Sprintf(`{"voiceprints":%s,"matching":{"threshold":100}}`, people)); matched > 0 || unmatched == 0 {
		t.Errorf("without the earlier stream: %d starts with the match, %d without", matched, unmatched)
	}
	if second, _, _ = play(again, fmt.Sprintf(`{"resume":%q}`, first.ID)); !second.Resumed {
		t.Error("without voiceprints it is not resumed")
	}
}

func TestBadEnrolmentsAreRefused(t *testing.T) {
	t.Parallel()
	h := serve(t)
	good := voiceprintOf(t, demoAudio(t, 6)[16000:])
	of := func(label, text string) string {
		raw, _ := json.Marshal(protocol.LabelledVoiceprint{Label: label, Voiceprint: text})
		return string(raw)
	}
	made, _ := voiceprint.Version(good)
	for _, c := range []struct{ body, field string }{
		{`{"voiceprints":{}}`, "voiceprints"},
		{`{"voiceprints":[]}`, "voiceprints"},
		{`{"voiceprints":[` + strings.Repeat(of("x", "y")+",", 50) + of("x", "y") + `]}`, "voiceprints"},
		{`{"voiceprints":["x"]}`, "voiceprints"},
		{`{"voiceprints":[{"voiceprint":"x"}]}`, "voiceprints[0].label"},
		{`{"voiceprints":[` + of("", good) + `]}`, "voiceprints[0].label"},
		{`{"voiceprints":[` + of("speaker_9", good) + `]}`, "voiceprints[0].label"},
		{`{"voiceprints":[` + of(strings.Repeat("é", 101), good) + `]}`, "voiceprints[0].label"},
		{`{"voiceprints":[` + of("a\x1bb", good) + `]}`, "voiceprints[0].label"},
		{`{"voiceprints":[` + of("Sam", good) + "," + of("Sam", good) + `]}`, "voiceprints[1].label"},
		{`{"voiceprints":[{"label":"Sam","voiceprint":null}]}`, "voiceprints[0].voiceprint"},
		{`{"voiceprints":[` + of("Sam", "hello") + `]}`, "voiceprints[0].voiceprint"},
		{`{"voiceprints":[` + of("Sam", strings.Repeat("x", 20_001)) + `]}`, "voiceprints[0].voiceprint"},
		{`{"voiceprints":[` + of("Sam", good) + "," + of("Rosa", good[:len(good)-9]) + `]}`, "voiceprints[1].voiceprint"},
		{`{"voiceprints":[` + of("Sam", strings.Replace(good, made, "0.1", 1)) + `]}`, "voiceprints[0].voiceprint"},
		{`{"matching":7}`, "matching"},
		{`{"matching":{"threshold":101}}`, "matching.threshold"},
		{`{"matching":{"threshold":"90"}}`, "matching.threshold"},
		{`{"matching":{"exclusive":"yes"}}`, "matching.exclusive"},
	} {
		h.do("POST", "/v1/live", testKey, strings.NewReader(c.body)).invalid(t, c.body, c.field)
	}
	for _, fine := range []string{`{"voiceprints":null,"matching":null}`, `{"voiceprints":[` + of(strings.Repeat("é", 100), good) + `],"matching":{"threshold":0,"exclusive":false}}`} {
		h.do("POST", "/v1/live", testKey, strings.NewReader(fine)).hasStatus(t, fine, 200)
	}
}
