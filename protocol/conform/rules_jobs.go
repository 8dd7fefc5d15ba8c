package conform

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/protocol"
)

// Webhooks are tested up to the check of their address: a service calls public
// addresses only, where the tests cannot listen.
var jobRules = []Rule{
	{Name: "jobs/url", Expected: "POST /v1/diarize returns 400, a ValidationErrorResponse, to a url that is a path of the server", Section: "Create a job", Chosen: true, check: func(p *prober) string {
		p.createJob("diarize", `{"url":"/etc/hosts"}`).expectInvalid("url")
		return "400"
	}},
	{Name: "jobs/fields", Expected: "numbers of speakers that are not valid or contradict each other get 400 with the field, and so does an identification without voiceprints", Section: "Create a job", Chosen: true, check: func(p *prober) string {
		for _, wrong := range [][2]string{
			{"numSpeakers", `"numSpeakers":0`}, {"numSpeakers", `"numSpeakers":1.5`}, {"minSpeakers", `"minSpeakers":"2"`},
			{"maxSpeakers", `"minSpeakers":3,"maxSpeakers":2`}, {"numSpeakers", `"numSpeakers":4,"maxSpeakers":2`},
		} {
			p.createJob("diarize", fmt.Sprintf(`{"url":"media://%s/none",%s}`, p.prefix, wrong[1])).expectInvalid(wrong[0])
		}
		p.createJob("identify", locationBody("media://"+p.prefix+"/none")).expectInvalid("voiceprints")
		return "400 for 6 of them"
	}},
	{Name: "jobs/webhook", Expected: "a webhook over plain HTTP or at a private address gets 400 with the field webhook", Section: "Webhooks", Chosen: true, check: func(p *prober) string {
		// Hosts that an operator does not name for webhooks.
		all := []string{"http://hubbub-conform.invalid/", "https://127.13.13.13/", "https://169.254.169.254/", "https://[::ffff:169.254.169.254]/"}
		for _, address := range all {
			p.createJob("diarize", fmt.Sprintf(`{"url":"media://%s/none","webhook":%q}`, p.prefix, address)).expectInvalid("webhook")
		}
		return fmt.Sprintf("400 for %d of them", len(all))
	}},
	{Name: "jobs/created", Expected: "POST /v1/diarize takes null for every optional field, and returns 200 with jobId and the status created", Section: "Create a job", Chosen: true, check: func(p *prober) string {
		newJob(p)
		return "200, created"
	}},
	{Name: "jobs/transcription", Expected: "POST /v1/diarize with transcription returns 200, or 400 with the field transcription if the service recognises no speech", Section: "Words of a job", Chosen: true, check: func(p *prober) string {
		r := p.createJob("diarize", `{"url":"media://`+p.prefix+`/none","transcription":true,"transcriptionConfig":{"model":null}}`)
		if r.status == http.StatusOK {
			r.text("jobId", "status")
			return "200"
		}
		r.expectInvalid("transcription")
		return "400"
	}},
	{Name: "jobs/failed", Expected: "a job without audio ends with the status failed, and output has the string error; before it has no output", Section: "Get a job", Chosen: true, check: func(p *prober) string {
		return p.jobEnd(needs(p, newJob, "jobs/created")).expectFailed()
	}},
	{Name: "jobs/succeeded", Expected: "a job on speech ends with the status succeeded and both times; diarization has its turns in order of start, each with speaker, start and end", Section: "Get a job", Chosen: true, step: diarized, check: func(p *prober) string {
		r := diarized.of(p)
		fields := r.object()
		for _, name := range []string{"createdAt", "updatedAt"} {
			if !instant.MatchString(textOf(fields, name)) {
				differs("%s is %s", name, fields[name])
			}
		}
		turns := outputOf[struct {
			Diarization []struct {
				Speaker    string
				Start, End *float64
			}
		}](r).Diarization
		last := 0.0
		for i, t := range turns {
			if t.Speaker == "" || t.Start == nil || t.End == nil || *t.Start < last || *t.End <= *t.Start || *t.End > p.speech().Seconds() {
				differs("turn %d is wrong, or earlier than the one before: %s", i+1, protocol.Clean(string(fields["output"]), 400))
			}
			last = *t.Start
		}
		if len(turns) == 0 {
			differs("%s", r)
		}
		return fmt.Sprintf("%d turns", len(turns))
	}},
	{Name: "jobs/exclusive", Expected: "with exclusive the output also has exclusiveDiarization, turns without overlap", Section: "Results of a job", Chosen: true, step: diarized, check: func(p *prober) string {
		p.diarization()
		turns := outputOf[struct {
			Exclusive []struct {
				Speaker    string
				Start, End float64
			} `json:"exclusiveDiarization"`
		}](diarized.of(p)).Exclusive
		for i, t := range turns {
			if t.Speaker == "" || t.End <= t.Start || i > 0 && t.Start < turns[i-1].End {
				differs("its turn %d is %+v", i+1, t)
			}
		}
		if len(turns) == 0 {
			differs("it has no turns")
		}
		return fmt.Sprintf("%d turns", len(turns))
	}},
	{Name: "jobs/confidence", Expected: "with turnLevelConfidence each turn has the confidence of all speakers, with confidence the output has that of each frame of 20 ms, all 0 to 100", Section: "Results of a job", Chosen: true, step: diarized, check: func(p *prober) string {
		p.diarization()
		d := outputOf[struct {
			Turns []struct {
				Speaker    string
				Confidence map[string]int
			} `json:"diarization"`
			Confidence *protocol.FrameConfidence
		}](diarized.of(p))
		for i, t := range d.Turns {
			for _, of := range d.Turns {
				if c, ok := t.Confidence[of.Speaker]; !ok || c < 0 || c > 100 {
					differs("the confidence of turn %d is %v", i+1, t.Confidence)
				}
			}
		}
		var f protocol.FrameConfidence
		if d.Confidence != nil {
			f = *d.Confidence
		}
		frames := fmt.Sprintf("%d frames of %g s", len(f.Score), f.Resolution)
		if length := time.Duration(len(f.Score)) * 20 * time.Millisecond; len(f.Score) == 0 || f.Resolution != 0.02 || (length-p.speech()).Abs() > time.Second {
			differs("the output has the confidence of %s for %v of audio", frames, p.speech())
		}
		if least, most := slices.Min(f.Score), slices.Max(f.Score); least < 0 || most > 100 {
			differs("the confidence of frames is %d to %d", least, most)
		}
		return frames
	}},
	{Name: "jobs/cancel", Expected: "DELETE /v1/jobs/{id} cancels a job that is not over, which then has no output; one that has succeeded gets 409, an ApiError", Section: "Cancel a job", Chosen: true, step: diarized, check: func(p *prober) string {
		p.diarization()
		over := textOf(diarized.of(p).object(), "jobId")
		p.expectError(http.StatusConflict, remove("/v1/jobs/"+over))
		id := p.jobID(p.createJob("diarize", locationBody(p.speechLocation())))
		r := p.do(remove("/v1/jobs/" + id))
		if r.status == http.StatusConflict { // it was over
			return "409"
		}
		r.expect(http.StatusOK)
		end := p.jobEnd(id)
		if fields := end.object(); textOf(fields, "status") != protocol.JobCanceled || fields["output"] != nil {
			differs("after its deletion %s", end)
		}
		return "canceled, and 409 for one that is over"
	}},
	{Name: "jobs/list", Expected: "GET /v2/jobs lists jobs, newest first; nextCursor continues the list", Section: "List jobs", Chosen: true, check: func(p *prober) string {
		needs(p, newJob, "jobs/created")
		id := newJob(p)
		r := p.do(get("/v2/jobs?limit=1"))
		if r.missing() {
			notOffered("%s", r)
		}
		first := p.jobPage(r)
		if first.NextCursor == nil {
			differs("there are more jobs than one: %s", r)
		}
		next := p.do(get("/v2/jobs?limit=1&cursor=" + *first.NextCursor))
		a, b := first.Items[0], p.jobPage(next).Items[0]
		if a.CreatedAt < b.CreatedAt || a.ID == b.ID {
			differs("after the job %s: %s", a.ID, next)
		}
		for _, bad := range []string{"limit=0", "limit=101", "status=new"} {
			p.do(get("/v2/jobs?" + bad)).expectInvalid()
		}
		if a.ID != id {
			return "the key is used elsewhere as well"
		}
		return "the newest job is the first"
	}},
	{Name: "jobs/unknown", Expected: "an unknown job gets 404, an ApiError", Section: "Get a job", Chosen: true, check: func(p *prober) string {
		needs(p, newJob, "jobs/created") // jobs may not be offered
		return p.expectError(http.StatusNotFound, get("/v1/jobs/"+unknownID), get("/v1/jobs/no-uuid"), remove("/v1/jobs/"+unknownID))
	}},
	{Name: "jobs/foreign", Expected: "a job of another account gets 404, an ApiError", Section: "Get a job", Chosen: true, check: func(p *prober) string {
		auth := p.other()
		path := "/v1/jobs/" + needs(p, newJob, "jobs/created")
		return p.expectError(http.StatusNotFound, get(path).with(auth), remove(path).with(auth))
	}},
	{Name: "jobs/voiceprint", Expected: "POST /v1/voiceprint on speech of one person succeeds, and output has the string voiceprint of at most 20,000 characters", Section: "Results of a job", Chosen: true, step: voiceprinted, check: func(p *prober) string {
		v := outputOf[protocol.VoiceprintOutput](voiceprinted.of(p)).Voiceprint
		if n := len(v); n == 0 || n > protocol.MaxVoiceprint {
			differs("it has %d characters", n)
		}
		return fmt.Sprintf("%d characters", len(v))
	}},
	{Name: "jobs/one-person", Expected: "a voiceprint job on speech of several people fails, and output has the string error", Section: "Results of a job", Chosen: true, step: diarized, check: func(p *prober) string {
		if turns := p.diarization().Turns; !slices.ContainsFunc(turns, func(t protocol.JobTurn) bool { return t.Speaker != turns[0].Speaker }) {
			skipped("the speech has one speaker only")
		}
		return p.jobEnd(p.jobID(p.createJob("voiceprint", locationBody(p.speechLocation())))).expectFailed()
	}},
	{Name: "jobs/identify", Expected: "POST /v1/identify with a voiceprint of one of the people gives the turns of that person its label as match and as speaker; the other speakers have the match null", Section: "Results of a job", Chosen: true, step: identified, check: func(p *prober) string {
		d := outputOf[protocol.Identification](identified.of(p))
		all := outputOf[struct{ Identification, Voiceprints []map[string]json.RawMessage }](identified.of(p))
		for _, of := range slices.Concat(all.Identification, all.Voiceprints) {
			if _, ok := of["match"]; !ok {
				differs("%s has no match", protocol.Label(textOf(of, "speaker")))
			}
		}
		who := "" // the speaker of the diarization who matched
		for _, v := range d.Voices {
			if c, ok := v.Confidence[voiceprintLabel]; !ok || c < 0 || c > 100 {
				differs("%s has the confidence %v", protocol.Label(v.Speaker), v.Confidence)
			}
			if v.Match != nil {
				if who != "" || *v.Match != voiceprintLabel {
					differs("%s matches %q", protocol.Label(v.Speaker), *v.Match)
				}
				who = v.Speaker
			}
		}
		if who == "" || len(d.Turns) == 0 {
			differs("nobody matches: %s", identified.of(p))
		}
		for i, t := range d.Turns {
			want := t.Diarization
			if want == who {
				want = voiceprintLabel
			}
			if t.Speaker != want || (t.Match != nil) != (t.Diarization == who) || t.Match != nil && *t.Match != want {
				differs("turn %d of the identification is not that of %s", i+1, want)
			}
		}
		return fmt.Sprintf("%s matches", who)
	}},
}

const (
	// jobWait is how long a job may take.
	jobWait = 30 * time.Second
	// voiceprintLabel is the label of the voiceprint.
	voiceprintLabel = "conform"
)

// createJob creates a job; another service need not have the operation.
func (p *prober) createJob(kind, body string) *response {
	r := p.do(post("/v1/"+kind, body))
	if r.missing() {
		notOffered("%s", r)
	}
	return r
}

// jobID is the ID of a job that was created.
func (p *prober) jobID(r *response) string {
	r.expect(http.StatusOK)
	fields := r.text("jobId", "status")
	if fields["status"] != protocol.JobCreated {
		differs("%s", r)
	}
	return fields["jobId"]
}

// newJob creates a job on audio that does not exist.
func newJob(p *prober) (id string) {
	return p.jobID(p.createJob("diarize", `{"url":"media://`+p.prefix+`/none","model":null,"numSpeakers":null,"minSpeakers":null,"maxSpeakers":null,`+
		`"confidence":null,"turnLevelConfidence":null,"exclusive":null,"transcription":null,"webhook":null}`))
}

// jobEnd waits until a job is over. Before it has no output.
func (p *prober) jobEnd(id string) *response {
	for deadline := time.Now().Add(jobWait + p.Slack); ; {
		r := p.do(get("/v1/jobs/" + id))
		r.expect(http.StatusOK)
		fields := r.object()
		switch textOf(fields, "status") {
		case protocol.JobSucceeded, protocol.JobFailed, protocol.JobCanceled:
			return r
		case protocol.JobPending, protocol.JobCreated, protocol.JobRunning:
			if fields["output"] == nil && time.Now().Before(deadline) {
				p.sleep(250 * time.Millisecond)
				continue
			}
		}
		differs("%s", r)
	}
}

// expectFailed requires the status of a job that has failed.
func (r *response) expectFailed() string {
	var s protocol.JobStatus
	var e protocol.JobError
	if json.Unmarshal(r.body, &s) != nil || s.Status != protocol.JobFailed || json.Unmarshal(s.Output, &e) != nil || e.Error == "" {
		differs("%s", r)
	}
	return "failed: " + protocol.Clean(e.Error, 80)
}

// outputOf is the output of a job that has succeeded.
func outputOf[T any](r *response) (out T) {
	fields := r.object()
	if textOf(fields, "status") != protocol.JobSucceeded || json.Unmarshal(fields["output"], &out) != nil {
		differs("%s", r)
	}
	return out
}

// jobPage is a list of one job.
func (p *prober) jobPage(r *response) (page protocol.JobList) {
	r.expect(http.StatusOK)
	if json.Unmarshal(r.body, &page) != nil || len(page.Items) != 1 || page.Items[0].ID == "" || page.Items[0].Status == "" || !instant.MatchString(page.Items[0].CreatedAt) {
		differs("%s", r)
	}
	return page
}

// speechLocation is where the step diarized stores the speech.
func (p *prober) speechLocation() string { return "media://" + p.prefix + "/speech.wav" }

// diarized is the end of a job on the speech.
var diarized = share(func(p *prober) *response {
	p.store(p.speechLocation(), string(audiofile.WAV(p.Speech)))
	created := p.createJob("diarize", fmt.Sprintf(`{"url":%q,"turnLevelConfidence":true,"confidence":true,"exclusive":true}`, p.speechLocation()))
	return p.jobEnd(needs(p, func(*prober) string { return p.jobID(created) }, "jobs/created"))
})

// diarization is the output of that job, as far as it can be decoded: jobs/exclusive and
// jobs/confidence report what of theirs has another type.
func (p *prober) diarization() (d protocol.Diarization) {
	raw := needs(p, func(*prober) json.RawMessage { return outputOf[json.RawMessage](diarized.of(p)) }, "jobs/succeeded")
	_ = json.Unmarshal(raw, &d)
	return d
}

// voiceprinted is the end of a job on the longest turn.
var voiceprinted = share(func(p *prober) *response {
	turns := p.diarization().Exclusive
	length := func(t protocol.JobTurn) float64 { return float64(t.End - t.Start) }
	if len(turns) == 0 {
		skipped("it needs a turn: see jobs/exclusive")
	}
	t := slices.MaxFunc(turns, func(a, b protocol.JobTurn) int { return cmp.Compare(length(a), length(b)) })
	const least = 2 // seconds, of speech
	if length(t) < least {
		skipped("it needs a turn of %d s", least)
	}
	at := "media://" + p.prefix + "/turn.wav"
	rate := protocol.Seconds(audiofile.SampleRate)
	p.store(at, string(audiofile.WAV(p.Speech[int(t.Start*rate):min(int(t.End*rate), len(p.Speech))])))
	return p.jobEnd(p.jobID(p.createJob("voiceprint", locationBody(at))))
})

// enrolment is a field of a request with that voiceprint.
func (p *prober) enrolment() string {
	v := needs(p, func(*prober) protocol.VoiceprintOutput {
		return outputOf[protocol.VoiceprintOutput](voiceprinted.of(p))
	}, "jobs/voiceprint")
	raw, _ := json.Marshal(protocol.Enrolment{Voiceprints: []protocol.LabelledVoiceprint{{Label: voiceprintLabel, Voiceprint: v.Voiceprint}}}) // strings always marshal
	return string(raw[1 : len(raw)-1])
}

// identified is the end of a job on the speech with that voiceprint.
var identified = share(func(p *prober) *response {
	return p.jobEnd(p.jobID(p.createJob("identify", fmt.Sprintf(`{"url":%q,%s}`, p.speechLocation(), p.enrolment()))))
})

// speech is the length of the speech.
func (p *prober) speech() time.Duration {
	return time.Duration(len(p.Speech)/protocol.ChunkSamples) * protocol.ChunkDuration
}
