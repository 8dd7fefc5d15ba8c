package conform

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"hubbub/protocol"
)

var jobRules = []Rule{
	{Name: "jobs/url", Expected: "POST /v1/diarize returns 400, a ValidationErrorResponse, to a url that is a path of the server", Section: "Create a job", Chosen: true, check: jobURL},
	{Name: "jobs/created", Expected: "POST /v1/diarize takes null for every optional field, and returns 200 with jobId and the status created", Section: "Create a job", Chosen: true, check: jobCreated},
	{Name: "jobs/transcription", Expected: "POST /v1/diarize with transcription returns 200, or 400 with the field transcription if the service recognises no speech", Section: "Words of a job", Chosen: true, check: jobTranscription},
	{Name: "jobs/failed", Expected: "a job without audio ends with the status failed, and output has the string error; before it has no output", Section: "Get a job", Chosen: true, check: jobFails},
}

// jobWait is how long a job without audio may take.
const jobWait = 30 * time.Second

// diarize creates a job; another service need not have the operation.
func (p *prober) diarize(ctx context.Context, body string) (*response, error) {
	r, err := p.do(ctx, request{method: "POST", path: "/v1/diarize", body: body})
	if err == nil && (r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed || r.status == http.StatusNotImplemented) {
		return nil, notOffered("%s", r)
	}
	return r, err
}

func jobURL(ctx context.Context, p *prober) (string, error) {
	r, err := p.diarize(ctx, `{"url":"/etc/hosts"}`)
	if err == nil {
		err = r.invalid()
	}
	return "400", err
}

// newJob creates a job on audio that does not exist.
func (p *prober) newJob(ctx context.Context) (id string, err error) {
	r, err := p.diarize(ctx, `{"url":"media://`+p.prefix+`/none","model":null,"numSpeakers":null,"minSpeakers":null,"maxSpeakers":null,`+
		`"confidence":null,"turnLevelConfidence":null,"exclusive":null,"transcription":null,"webhook":null}`)
	if err == nil {
		err = r.is(http.StatusOK)
	}
	if err != nil {
		return "", err
	}
	fields, err := r.text("jobId", "status")
	if err == nil && fields["status"] != protocol.JobCreated {
		err = differs("%s", r)
	}
	return fields["jobId"], err
}

func jobCreated(ctx context.Context, p *prober) (string, error) {
	_, err := p.newJob(ctx)
	return "200, created", err
}

func jobTranscription(ctx context.Context, p *prober) (string, error) {
	r, err := p.diarize(ctx, `{"url":"media://`+p.prefix+`/none","transcription":true,"transcriptionConfig":{"model":null}}`)
	if err != nil {
		return "", err
	}
	if r.status == http.StatusOK {
		_, err = r.text("jobId", "status")
		return "200", err
	}
	var refused protocol.ValidationErrorResponse
	if err = r.invalid(); err == nil && (json.Unmarshal(r.body, &refused) != nil ||
		!slices.ContainsFunc(refused.Errors, func(e protocol.ValidationError) bool { return e.Field == "transcription" })) {
		err = differs("%s", r)
	}
	return "400", err
}

func jobFails(ctx context.Context, p *prober) (string, error) {
	id, err := p.newJob(ctx)
	if err != nil {
		return "", err
	}
	for deadline := time.Now().Add(jobWait + p.Slack); ; {
		r, err := p.do(ctx, request{method: "GET", path: "/v1/jobs/" + id})
		if err == nil {
			err = r.is(http.StatusOK)
		}
		if err != nil {
			return "", err
		}
		fields, err := r.isJSON()
		if err != nil {
			return "", err
		}
		status, output := textOf(fields, "status"), fields["output"]
		switch {
		case status == protocol.JobFailed:
			var e protocol.JobError
			if json.Unmarshal(output, &e) != nil || e.Error == "" {
				return "", differs("%s", r)
			}
			return "failed: " + protocol.Clean(e.Error, 80), nil
		case output != nil, !slices.Contains([]string{protocol.JobPending, protocol.JobCreated, protocol.JobRunning}, status), time.Now().After(deadline):
			return "", differs("%s", r)
		}
		if err := protocol.Sleep(ctx, 250*time.Millisecond); err != nil {
			return "", err
		}
	}
}
