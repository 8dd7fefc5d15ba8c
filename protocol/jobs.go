package protocol

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
)

// The kinds of jobs: the operations that create them.
const (
	JobDiarize    = "diarize"
	JobVoiceprint = "voiceprint"
	JobIdentify   = "identify"
)

// The states of a job, in the field status of JobStatus.
const (
	JobPending   = "pending"
	JobCreated   = "created"
	JobRunning   = "running"
	JobSucceeded = "succeeded"
	JobFailed    = "failed"
	JobCanceled  = "canceled"
)

// JobStates are all states of a job.
func JobStates() []string {
	return []string{JobPending, JobCreated, JobRunning, JobSucceeded, JobFailed, JobCanceled}
}

const (
	// MaxJobSpeakers is the largest number of speakers in a whole recording.
	MaxJobSpeakers = 20
	// maxJobURL bounds the http addresses of a request, in bytes.
	maxJobURL = 2048
)

// JobRequest is the body of POST /v1/diarize, /v1/voiceprint and /v1/identify. A
// field that is not given, or null, has its zero value.
type JobRequest struct {
	// URL is a media location, or an http or https address.
	URL string `json:"url"`
	// Model is a name; any of any length is accepted, and none is stored with the job.
	Model string `json:"-"`
	// NumSpeakers is the number of speakers; the others are bounds. 0 = not
	// known. They are at most MaxJobSpeakers.
	NumSpeakers int `json:"numSpeakers,omitempty"`
	MinSpeakers int `json:"minSpeakers,omitempty"`
	MaxSpeakers int `json:"maxSpeakers,omitempty"`
	// What the output has beside the turns.
	Confidence          bool `json:"confidence,omitempty"`
	TurnLevelConfidence bool `json:"turnLevelConfidence,omitempty"`
	Exclusive           bool `json:"exclusive,omitempty"`
	Transcription       bool `json:"transcription,omitempty"`
	// WordsModel is the field transcriptionConfig.model, a name like Model.
	WordsModel string `json:"-"`
	// Webhook is an http or https address; "" = none.
	Webhook           string `json:"webhook,omitempty"`
	WebhookStatusOnly bool   `json:"webhookStatusOnly,omitempty"`
	// Enrolment is the people of an identification.
	Enrolment
}

// ParseJob parses and checks the body of an operation that creates a job. Fields
// that are not known are ignored. warnings say what cannot be fulfilled. What a
// voiceprint contains, and whether the service may call an http address, is not
// checked.
func ParseJob(kind string, body []byte) (r JobRequest, warnings []string, bad *ValidationErrorResponse) {
	input, bad := ValidateInput(body)
	if bad != nil {
		return r, nil, bad
	}
	f := fieldsOf(input)
	if r.URL = f.required("url"); r.URL != "" {
		f.checkURL(r.URL)
	}
	r.Model = f.text("model")
	if webhook := read[string](f, "webhook", notText); webhook != nil {
		r.Webhook = *webhook
		f.checkWeb("webhook", r.Webhook)
	}
	r.WebhookStatusOnly = f.flag("webhookStatusOnly")
	switch kind {
	case JobDiarize:
		r.Transcription = f.flag("transcription")
		config := readOr[map[string]json.RawMessage](f, "transcriptionConfig", "must be an object")
		r.WordsModel = fields{config, "transcriptionConfig.", f.errors}.text("model")
	case JobIdentify:
		if f.flag("transcription") {
			warnings = append(warnings, "An identification has no transcription.")
		}
		if r.Enrolment = f.enrolment(); !f.given("voiceprints") {
			f.refuse("voiceprints", "is required")
		}
	}
	if kind != JobVoiceprint {
		r.Confidence, r.TurnLevelConfidence, r.Exclusive = f.flag("confidence"), f.flag("turnLevelConfidence"), f.flag("exclusive")
		warnings = append(warnings, f.countSpeakers(&r)...)
	}
	return r, warnings, f.invalid()
}

// countSpeakers reads the numbers of speakers. Those that contradict each other are refused,
// and those that are too large are cut; where that changes the result there is a warning.
func (f fields) countSpeakers(r *JobRequest) (warnings []string) {
	r.NumSpeakers, r.MinSpeakers, r.MaxSpeakers = f.count("numSpeakers"), f.count("minSpeakers"), f.count("maxSpeakers")
	if r.MaxSpeakers > 0 && r.MinSpeakers > r.MaxSpeakers {
		f.refuse("minSpeakers", "must not be above maxSpeakers")
		f.refuse("maxSpeakers", "must not be below minSpeakers")
	}
	if n := r.NumSpeakers; n > 0 && (n < r.MinSpeakers || r.MaxSpeakers > 0 && n > r.MaxSpeakers) {
		f.refuse("numSpeakers", "must be within minSpeakers and maxSpeakers")
	}
	cut := func(name string, n *int) {
		if *n > MaxJobSpeakers {
			warnings = append(warnings, fmt.Sprintf("%s is %s, but at most %d speakers are told apart.", name, Clean(string(f.values[name]), 40), MaxJobSpeakers))
			*n = MaxJobSpeakers
		}
	}
	cut("numSpeakers", &r.NumSpeakers)
	cut("minSpeakers", &r.MinSpeakers)
	r.MaxSpeakers = min(r.MaxSpeakers, MaxJobSpeakers)
	return warnings
}

// count reads a number of speakers.
func (f fields) count(name string) int {
	const wrong = "must be a whole number of 1 or more"
	switch n := read[float64](f, name, wrong); {
	case n == nil:
		return 0
	case *n != math.Trunc(*n) || *n < 1:
		f.refuse(name, wrong)
		return 0
	default:
		return int(min(*n, math.MaxInt32))
	}
}

// checkURL refuses what is neither a media location nor an http address.
func (f fields) checkURL(address string) {
	if isWeb(address) {
		f.checkWeb("url", address)
	} else if bad := (MediaLocation{address}).Validate(); bad != nil {
		*f.errors = append(*f.errors, bad.Errors...)
	}
}

// isWeb reports whether an address is one of http or https.
func isWeb(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

// checkWeb refuses what is not an http address.
func (f fields) checkWeb(name, address string) {
	u, err := url.Parse(address)
	switch {
	case len(address) > maxJobURL:
		f.refuse(name, "must have at most %d characters", maxJobURL)
	case err != nil || u.Hostname() == "" || !isWeb(address):
		f.refuse(name, "must be an http or https address")
	case u.User != nil:
		f.refuse(name, "must not contain credentials")
	case !ValidPort(u):
		f.refuse(name, "must have a port from 1 to 65535")
	}
}

// JobAccepted is the response body of the operations that create a job.
type JobAccepted struct {
	JobID  string `json:"jobId"`
	Status string `json:"status"`
	// Warning says what of the request cannot be fulfilled; "" = nothing.
	Warning string `json:"warning,omitempty"`
}

// JobStatus is the response body of GET /v1/jobs/{id} and DELETE /v1/jobs/{id}.
type JobStatus struct {
	JobID     string `json:"jobId"`
	Status    string `json:"status"`
	CreatedAt string `json:"createdAt"`
	UpdatedAt string `json:"updatedAt"`
	// Output is the result of a job that succeeded, a JobError of one that
	// failed, else empty.
	Output json.RawMessage `json:"output,omitempty"`
}

// JobError is the output of a job that failed.
type JobError struct {
	Error string `json:"error"`
}

// JobList is the response body of GET /v2/jobs, newest first.
type JobList struct {
	Items []JobItem `json:"items"`
	// NextCursor is the parameter cursor of the next request; nil = no more.
	NextCursor *string `json:"nextCursor"`
}

// JobItem is a job of a JobList.
type JobItem struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	CreatedAt string `json:"createdAt"`
	// Kind is the operation, and Progress the share of the work that is done, 0
	// to 1; only with the parameter progress.
	Kind     string   `json:"kind,omitempty"`
	Progress *float64 `json:"progress,omitempty"`
}

// JobTurn is a turn of a job's output. Times are in seconds with three decimals.
type JobTurn struct {
	Speaker string  `json:"speaker"`
	Start   Seconds `json:"start"`
	End     Seconds `json:"end"`
	// Confidence is that of each speaker during the turn, 0 to 100; nil = not
	// asked for.
	Confidence map[string]int `json:"confidence,omitempty"`
}

// Seconds are written with three decimals.
type Seconds float64

// MarshalJSON writes three decimals.
func (s Seconds) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(s)), nil }

// FrameConfidence is how certain the decisions about the frames of a recording
// are.
type FrameConfidence struct {
	Score      []int   `json:"score"`      // 0 to 100, of each frame
	Resolution float64 `json:"resolution"` // seconds of a frame
}

// Diarization is the output of a diarization and part of that of an
// identification.
type Diarization struct {
	Turns      []JobTurn        `json:"diarization"`
	Exclusive  []JobTurn        `json:"exclusiveDiarization,omitzero"`
	Confidence *FrameConfidence `json:"confidence,omitempty"`
	// TurnTexts are what was said in each turn, and Words the words, both in order of
	// start; nil = not asked for.
	TurnTexts []JobText `json:"turnLevelTranscription,omitzero"`
	Words     []JobText `json:"wordLevelTranscription,omitzero"`
	// Warning says what of the request could not be fulfilled; "" = nothing.
	Warning string `json:"warning,omitempty"`
}

// JobText is what a speaker said in a stretch of time, in seconds.
type JobText struct {
	Speaker string  `json:"speaker"`
	Start   Seconds `json:"start"`
	End     Seconds `json:"end"`
	Text    string  `json:"text"`
}

// Identification is the output of an identification.
type Identification struct {
	Diarization
	Turns  []IdentifiedTurn    `json:"identification"`
	Voices []IdentifiedSpeaker `json:"voiceprints"`
}

// IdentifiedTurn is a turn with the person who was recognised; Match is nil for
// nobody, and Speaker the match or the label of the diarization.
type IdentifiedTurn struct {
	Speaker     string  `json:"speaker"`
	Start       Seconds `json:"start"`
	End         Seconds `json:"end"`
	Diarization string  `json:"diarizationSpeaker"`
	Match       *string `json:"match"`
}

// IdentifiedSpeaker is a speaker with the confidence, 0 to 100, that it is each of
// the people.
type IdentifiedSpeaker struct {
	Speaker    string         `json:"speaker"`
	Match      *string        `json:"match"`
	Confidence map[string]int `json:"confidence"`
}

// VoiceprintOutput is the output of a voiceprint job.
type VoiceprintOutput struct {
	Voiceprint string `json:"voiceprint"`
}
