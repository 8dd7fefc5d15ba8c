package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"hubbub/capture/audiofile"
	"hubbub/localserver/apikeys"
	"hubbub/localserver/store"
	"hubbub/protocol"
	"hubbub/protocol/testkit"
	"hubbub/protocol/words"
)

var (
	demoPrint     string
	demoPrintOnce sync.Once
)

// demoVoiceprint is a voiceprint of the first person of the demo.
func demoVoiceprint(t testing.TB) string {
	demoPrintOnce.Do(func() { demoPrint = voiceprintOf(t, demoAudio(t, 6)[16000:]) })
	return demoPrint
}

// upload stores an object.
func (h *host) upload(name string, body []byte) { h.t.Helper(); h.put("media://"+name, string(body)) }

// submit creates a job.
func (h *host) submit(operation, body string) protocol.JobAccepted {
	h.t.Helper()
	a := decoded[protocol.JobAccepted](h.t, h.do("POST", "/v1/"+operation, testKey, strings.NewReader(body)), 200)
	if a.Status != "created" || uuid.Validate(a.JobID) != nil {
		h.t.Fatalf("%s: %+v", operation, a)
	}
	return a
}

// jobTimeout bounds the time of a job on a loaded machine, with the race detector.
const jobTimeout = 4 * time.Minute

// jobEnd waits for the end of a job and returns its status and body. Until then it
// has no output.
func (h *host) jobEnd(id string) (status protocol.JobStatus, body string) {
	h.t.Helper()
	for deadline := time.Now().Add(jobTimeout); ; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("the job has not ended: %s", body)
		}
		res := h.do("GET", "/v1/jobs/"+id, testKey, nil)
		if err := json.Unmarshal(res.body, &status); err != nil || res.StatusCode != 200 || status.JobID != id {
			h.t.Fatalf("%d %s", res.StatusCode, res.body)
		}
		body = string(res.body)
		over := status.Status == "succeeded" || status.Status == "failed" || status.Status == "canceled"
		if !over && strings.Contains(body, "output") {
			h.t.Fatalf("a job that is not over has an output: %s", body)
		}
		if over {
			return status, body
		}
	}
}

// TestJobs runs an identification with what the published client sends. Contract rules test
// the operations one by one.
func TestJobs(t *testing.T) {
	t.Parallel()
	h := serve(t)
	h.upload("talk", audiofile.WAV(demoAudio(t, 8)))
	a := h.submit("identify", fmt.Sprintf(`{"url":"media://talk","model":"precision-2","numSpeakers":null,"minSpeakers":null,"maxSpeakers":null,"confidence":true,`+
		`"turnLevelConfidence":true,"exclusive":true,"voiceprints":[{"label":"Sam","voiceprint":%q}],"matching":{"exclusive":true,"threshold":0.0}}`, demoVoiceprint(t)))
	testkit.Contains(t, a.Warning, "precision-2", "warning")
	status, body := h.jobEnd(a.JobID)
	var i protocol.Identification
	if err := json.Unmarshal(status.Output, &i); err != nil || len(i.Turns) == 0 || len(i.Turns) != len(i.Diarization.Turns) || i.Turns[0].Speaker != "Sam" || i.Turns[0].Diarization != "SPEAKER_00" {
		t.Fatalf("%.600s (%v)", body, err)
	}
	if !regexp.MustCompile(`"start":\d+\.\d{3},"end":\d+\.\d{3}[,}]`).MatchString(body) {
		t.Errorf("times without three decimals: %.300s", body)
	}
	matchesSchema(t, body)
	rec, _, err := h.store.Job(t.Context(), apikeys.DefaultAccount, status.JobID, time.Now())
	testkit.NoError(t, err)
	// As `hubbub store purge` does.
	testkit.NoError(t, h.store.DeleteMedia(t.Context(), store.JobMedia(apikeys.DefaultAccount), rec.Output, time.Now()))
	h.do("GET", "/v1/jobs/"+status.JobID, testKey, nil).hasStatus(t, "a job whose result was deleted returns", 404)
}

// matchesSchema compares the body of a job's status with openapi.json.
func matchesSchema(t *testing.T, body string) {
	t.Helper()
	value := testkit.Must(jsonschema.UnmarshalJSON(strings.NewReader(body)))(t)
	newContract(t, openAPI).matches("the status of a job", value, "components", "schemas", "JobStatus")
}

// timedSpeech is a words.Recogniser that gives a text and the times of its words.
type timedSpeech struct {
	text  string
	words []words.Word
}

func (r timedSpeech) Recognise(context.Context, []byte, bool) (string, []words.Word, error) {
	return r.text, r.words, nil
}

// TestJobTranscription: a job that asks for words has them by turn and by word; their
// times are those of the recogniser, or shares of the turn.
func TestJobTranscription(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	for name, recogniser := range map[string]words.Recogniser{
		"timed":   timedSpeech{"Good morning.", []words.Word{{Text: "Good", Start: 0.2, End: 0.3}, {Text: "morning.", Start: 0.3, End: 0.5}}},
		"untimed": speech(func(context.Context, []byte) (string, error) { calls.Add(1); return "Good morning.", nil }),
		"none":    speech(func(context.Context, []byte) (string, error) { return "", nil }),
		"broken":  speech(func(context.Context, []byte) (string, error) { return "", errors.New("secret cause") }),
	} {
		h := serve(t, func(o *setup) { o.Words = recogniser })
		h.upload("talk", audiofile.WAV(demoAudio(t, 8)))
		if name == "untimed" {
			h.jobEnd(h.submit("diarize", `{"url":"media://talk","transcription":false,"transcriptionConfig":{"model":"x"}}`).JobID)
			if calls.Load() > 0 {
				t.Error("the audio of a job that did not ask was recognised")
			}
		}
		a := h.submit("diarize", `{"url":"media://talk","transcription":true,"numSpeakers":3,"transcriptionConfig":{"model":"parakeet"}}`)
		testkit.Contains(t, a.Warning, "parakeet", "warning")
		status, body := h.jobEnd(a.JobID)
		matchesSchema(t, body)
		var d struct {
			Diarization                                    []struct{ Start, End float64 }
			TurnLevelTranscription, WordLevelTranscription []struct {
				Speaker, Text string
				Start, End    float64
			}
			Warning string
		}
		if err := json.Unmarshal(status.Output, &d); err != nil || len(d.Diarization) == 0 || d.TurnLevelTranscription == nil || d.WordLevelTranscription == nil {
			t.Fatalf("%s: %s (%v)", name, body, err)
		}
		if !strings.Contains(d.Warning, "of 3 speakers could be told apart") || strings.Contains(body, "secret") {
			t.Errorf("%s: %s", name, d.Warning)
		}
		turns, said := d.TurnLevelTranscription, d.WordLevelTranscription
		if name == "none" || name == "broken" {
			if len(turns)+len(said) > 0 || strings.Contains(d.Warning, "turns have no words") != (name == "broken") {
				t.Errorf("%s: %s", name, body)
			}
			continue
		}
		first := d.Diarization[0]
		length := first.End - first.Start
		want := []float64{first.Start, first.Start + length/3, first.End}
		if name == "timed" { // the audio begins 0.2 s before the turn
			want = []float64{first.Start, first.Start + 0.1, first.Start + 0.3}
		}
		if len(turns) == 0 || len(said) != 2*len(turns) || turns[0].Start != first.Start || turns[0].End != first.End || turns[0].Text != "Good morning." ||
			said[0].Text != "Good" || said[1].Text != "morning." || said[1].Speaker != turns[0].Speaker {
			t.Fatalf("%s: %s", name, body)
		}
		for i, got := range []float64{said[0].Start, said[1].Start, said[1].End} {
			if math.Abs(got-want[i]) > 0.0015 {
				t.Errorf("%s: words at %+v, want %v", name, said[:2], want)
			}
		}
	}
}

// TestJobFailures checks that bad audio gives a failed job that says why.
func TestJobFailures(t *testing.T) {
	t.Parallel()
	h := serve(t)
	silence := make([]float32, 16000)
	for name, body := range map[string][]byte{"empty": {}, "text": []byte("this is no audio"), "one": audiofile.WAV(silence[:1]), "silence": audiofile.WAV(silence),
		"cut": audiofile.WAV(silence)[:1000], "long": audiofile.WAV(make([]float32, 31*16000))} {
		h.upload(name, body)
	}
	for _, c := range []struct{ operation, name, want string }{
		{"diarize", "gone", "Nothing is stored at media://gone"},
		{"diarize", "empty", `"The audio is empty."`},
		{"diarize", "text", `"The audio is text, not audio."`},
		{"diarize", "one", `{"diarization":[]}`},
		{"diarize", "silence", `{"diarization":[]}`},
		{"diarize", "cut", `{"diarization":[],"warning":"Truncated: the header states 1.0 s, the file contains 0.0 s."}`},
		{"voiceprint", "silence", "The audio is silent"},
		{"voiceprint", "long", "The audio is longer than 30 s"},
	} {
		status, body := h.jobEnd(h.submit(c.operation, `{"url":"media://`+c.name+`"}`).JobID)
		if !strings.Contains(string(status.Output), c.want) || strings.Contains(c.want, "diarization") != (status.Status == "succeeded") {
			t.Errorf("%s of %s: %s, want %s", c.operation, c.name, body, c.want)
		}
	}
}

// TestJobRequests checks what this server refuses, and in which field; package protocol tests the form of the requests.
func TestJobRequests(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.Jobs = -1 })
	people := func(label string) string {
		return fmt.Sprintf(`"voiceprints":[{"label":%q,"voiceprint":%q}]`, label, demoVoiceprint(t))
	}
	for _, c := range []struct{ operation, body, field string }{
		{"diarize", `{"url":"https://example.com/a.wav"}`, "url"},
		{"diarize", `{"url":"media://live/x/turns.json"}`, "url"},
		{"diarize", `{"url":"media://x","transcription":true}`, "transcription"},
		{"identify", `{"url":"media://x"}`, "voiceprints"},
		{"identify", `{"url":"media://x","voiceprints":[{"label":"a","voiceprint":"x"}]}`, "voiceprints[0].voiceprint"},
		{"identify", `{"url":"media://x",` + people("Speaker_1") + `}`, "voiceprints[0].label"},
	} {
		h.do("POST", "/v1/"+c.operation, testKey, strings.NewReader(c.body)).invalid(t, c.body, c.field)
	}
	testkit.Contains(t, h.submit("diarize", `{"url":"media://x","numSpeakers":25}`).Warning, "numSpeakers is 25", "warning")
	// Names of models are accepted up to the size of a body.
	name := strings.Repeat("x", maxBody/2-100)
	if a := h.submit("diarize", fmt.Sprintf(`{"url":"media://x","model":%q,"transcriptionConfig":{"model":%q}}`, name, name)); !strings.Contains(a.Warning, "xxx") {
		t.Errorf("warning %q", a.Warning)
	}
}

// TestListJobs pages through the jobs of an account, newest first.
func TestListJobs(t *testing.T) {
	t.Parallel()
	h := serve(t, func(o *setup) { o.Jobs = -1 })
	var ids []string
	for range 5 {
		ids = append([]string{h.submit("diarize", `{"url":"media://x"}`).JobID}, ids...)
	}
	if res := h.do("DELETE", "/v1/jobs/"+ids[0], testKey, nil); res.StatusCode != 200 || !strings.Contains(string(res.body), `"status":"canceled"`) || strings.Contains(string(res.body), "output") {
		t.Errorf("cancel: %d %s", res.StatusCode, res.body)
	}
	testkit.Equal(t, h.metric(`hubbub_jobs_ended_total{status="canceled"}`), 1, "canceled jobs have left the queue")
	list := func(query string) protocol.JobList {
		return decoded[protocol.JobList](t, h.do("GET", "/v2/jobs"+query, testKey, nil), 200)
	}
	first := list("?limit=2")
	second := list("?limit=2&cursor=" + *first.NextCursor)
	last := list("?limit=2&cursor=" + *second.NextCursor)
	var got []string
	for _, page := range []protocol.JobList{first, second, last} {
		for _, item := range page.Items {
			got = append(got, item.ID)
		}
	}
	if strings.Join(got, " ") != strings.Join(ids, " ") || last.NextCursor != nil {
		t.Errorf("%v, want %v", got, ids)
	}
	if page := list("?status=canceled"); len(page.Items) != 1 || page.Items[0].ID != ids[0] || page.NextCursor != nil {
		t.Errorf("canceled jobs: %+v", page)
	}
	if page := list("?status=succeeded"); page.Items == nil || len(page.Items) != 0 {
		t.Errorf("succeeded jobs: %+v", page)
	}
	for _, query := range []string{"?limit=0", "?limit=x", "?status=done", "?cursor=x", "?progress=1", "?limit=%zz", "?limit=1;x"} {
		h.do("GET", "/v2/jobs"+query, testKey, nil).hasStatus(t, query, 400)
	}
}

// TestJobIsReturned stops a server whose job runs: another server on the same
// folder completes it.
func TestJobIsReturned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serve(t, func(o *setup) { o.DataDir = dir })
	first.upload("long", audiofile.WAV(make([]float32, 20*60*16000)))
	id := first.submit("diarize", `{"url":"media://long"}`).JobID
	testkit.Eventually(t, "a running job", func() bool { return first.jobs.Counters.Running.Load() == 1 })
	testkit.NoError(t, first.Shutdown(t.Context()))
	waiting := serve(t, func(o *setup) { o.DataDir, o.Jobs = dir, -1 })
	rec, _, err := waiting.store.Job(t.Context(), apikeys.DefaultAccount, id, time.Now())
	if err != nil || rec.Status != store.JobPending || rec.Attempts != 0 {
		t.Errorf("after the shutdown: %+v (%v)", rec, err)
	}
	waiting.upload("long", audiofile.WAV(make([]float32, 1600)))
	testkit.NoError(t, waiting.Shutdown(t.Context()))
	second := serve(t, func(o *setup) { o.DataDir = dir })
	if status, body := second.jobEnd(id); status.Status != "succeeded" {
		t.Errorf("%s", body)
	}
}

// A client that has too many jobs learns why no more are taken.
func TestTooManyJobs(t *testing.T) {
	t.Parallel()
	var log logBuffer
	h := serve(t, log.use, func(o *setup) { o.Jobs = -1 })
	for n := 0; ; n++ {
		err := h.store.CreateJob(t.Context(), store.Job{ID: uuid.NewString(), Account: "default", Status: store.JobCreated, Created: time.Now()})
		if errors.Is(err, store.ErrQuota) && n == 2000 {
			break
		}
		if err != nil || n == 2000 {
			t.Fatalf("%d jobs: %v", n, err)
		}
	}
	e := h.do("POST", "/v1/diarize", testKey, strings.NewReader(`{"url":"media://x"}`)).apiError(t, http.StatusServiceUnavailable)
	if !strings.Contains(e.Message, "Too many jobs") || log.count("level=ERROR") != 0 {
		t.Errorf("%s; log: %s", e.Message, log.String())
	}
}
