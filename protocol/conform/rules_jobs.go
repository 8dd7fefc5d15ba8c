package conform

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"hubbub/protocol"
)

var jobRules = []Rule{
	{Name: "jobs/url", Expected: "POST /v1/diarize returns 400, a ValidationErrorResponse, to a url that is a path of the server", Section: "Create a job", Chosen: true, check: func(p *prober) string {
		p.diarize(`{"url":"/etc/hosts"}`).expectInvalid()
		return "400"
	}},
	{Name: "jobs/created", Expected: "POST /v1/diarize takes null for every optional field, and returns 200 with jobId and the status created", Section: "Create a job", Chosen: true, check: func(p *prober) string {
		p.newJob()
		return "200, created"
	}},
	{Name: "jobs/transcription", Expected: "POST /v1/diarize with transcription returns 200, or 400 with the field transcription if the service recognises no speech", Section: "Words of a job", Chosen: true, check: func(p *prober) string {
		r := p.diarize(`{"url":"media://` + p.prefix + `/none","transcription":true,"transcriptionConfig":{"model":null}}`)
		if r.status == http.StatusOK {
			r.text("jobId", "status")
			return "200"
		}
		var refused protocol.ValidationErrorResponse
		r.expectInvalid()
		if json.Unmarshal(r.body, &refused) != nil ||
			!slices.ContainsFunc(refused.Errors, func(e protocol.ValidationError) bool { return e.Field == "transcription" }) {
			differs("%s", r)
		}
		return "400"
	}},
	{Name: "jobs/failed", Expected: "a job without audio ends with the status failed, and output has the string error; before it has no output", Section: "Get a job", Chosen: true, check: func(p *prober) string {
		id := p.newJob()
		for deadline := time.Now().Add(jobWait + p.Slack); ; {
			r := p.do(get("/v1/jobs/" + id))
			r.expect(http.StatusOK)
			fields := r.object()
			status, output := textOf(fields, "status"), fields["output"]
			switch {
			case status == protocol.JobFailed:
				var e protocol.JobError
				if json.Unmarshal(output, &e) != nil || e.Error == "" {
					differs("%s", r)
				}
				return "failed: " + protocol.Clean(e.Error, 80)
			case output != nil, !slices.Contains([]string{protocol.JobPending, protocol.JobCreated, protocol.JobRunning}, status), time.Now().After(deadline):
				differs("%s", r)
			}
			p.sleep(250 * time.Millisecond)
		}
	}},
}

// jobWait is how long a job without audio may take.
const jobWait = 30 * time.Second

// diarize creates a job; another service need not have the operation.
func (p *prober) diarize(body string) *response {
	r := p.do(post("/v1/diarize", body))
	if r.missing() {
		notOffered("%s", r)
	}
	return r
}

// newJob creates a job on audio that does not exist.
func (p *prober) newJob() (id string) {
	r := p.diarize(`{"url":"media://` + p.prefix + `/none","model":null,"numSpeakers":null,"minSpeakers":null,"maxSpeakers":null,` +
		`"confidence":null,"turnLevelConfidence":null,"exclusive":null,"transcription":null,"webhook":null}`)
	r.expect(http.StatusOK)
	fields := r.text("jobId", "status")
	if fields["status"] != protocol.JobCreated {
		differs("%s", r)
	}
	return fields["jobId"]
}
