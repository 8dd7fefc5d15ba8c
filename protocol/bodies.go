package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// The states of a stream, in the field status of LiveStatus: created, then
// running, then done or error.
const (
	StatusCreated = "created"
	StatusRunning = "running"
	StatusDone    = "done"
	StatusError   = "error"
)

// StatusOK is the field status of TestResponse.
const StatusOK = "OK"

// TestResponse is the response body of GET /v1/test.
type TestResponse struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// LiveStream is the response body of POST /v1/live.
type LiveStream struct {
	ID string `json:"id"`
	// URL is the WebSocket address. It contains the single-use token and gives
	// access to the stream.
	URL string `json:"url"`
	// Resumed says that the stream knows the speakers of the stream that the
	// request named in its field resume: the same people keep their labels.
	Resumed bool `json:"resumed,omitempty"`
	// Words says that the stream sends what was said, because the request asked for
	// it and the service has a recogniser.
	Words bool `json:"words,omitempty"`
}

// WantsWords reports whether the input of a stream asks for what was said.
func WantsWords(input json.RawMessage) bool {
	return InputField(input, "words") == true
}

// InputField returns a field of the input of a stream or of a message, which may be of any type;
// nil = there is none. A struct would also take names in other letters, such as "Words".
func InputField(input json.RawMessage, name string) (value any) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields)       // else there is none
	_ = json.Unmarshal(fields[name], &value) // fails only if there is none
	return value
}

// LiveStatus is the response body of GET /v1/live/{id}.
type LiveStatus struct {
	ID string `json:"id"`
	// StartedAt and CompletedAt are nil until they happen; see FormatTime.
	StartedAt   *string `json:"startedAt"`
	CompletedAt *string `json:"completedAt"`
	// Input is the JSON object that the stream was created with.
	Input json.RawMessage `json:"input"`
	// Status is StatusCreated, StatusRunning, StatusDone or StatusError; another
	// service may have more.
	Status string `json:"status"`
	// ResumedBy is the newest stream that has resumed this one; "" = none has, or
	// the service does not say.
	ResumedBy string `json:"resumedBy,omitempty"`
	// Resumable says that the stream was lost a moment ago and its client may still
	// resume it.
	Resumable bool `json:"resumable,omitempty"`
}

// ResumeAt is where the audio of a stream that resumes another one begins, in
// seconds after the begin of that one, as its client has said in the field resumeAt
// of Input; false if it has not.
func (s LiveStatus) ResumeAt() (seconds float64, known bool) {
	seconds, known = InputField(s.Input, "resumeAt").(float64)
	return seconds, known && seconds >= 0 && seconds <= MaxTimestamp
}

// FormatTime is the form of times in bodies: YYYY-MM-DDThh:mm:ssZ, in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// APIError is the body of every HTTP error but 400: the schema ApiError.
type APIError struct {
	RequestID string `json:"requestId"`
	Message   string `json:"message"`
}

// ValidationErrorResponse is the body of a 400.
type ValidationErrorResponse struct {
	Message string            `json:"message"`
	Errors  []ValidationError `json:"errors"`
}

// Error makes it an error that a handler can return.
func (r *ValidationErrorResponse) Error() string { return r.Message }

// ValidationError is the error of one field of a request.
type ValidationError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// MediaLocation is the body of POST /v1/media/output and /v1/media/input.
type MediaLocation struct {
	URL string `json:"url"`
}

// MediaList is the response body of GET /v1/media.
type MediaList struct {
	Media []MediaObject `json:"media"`
	// Next is the last location if there are more: the parameter after of the
	// next request.
	Next string `json:"next,omitempty"`
	// Used is how many bytes of the account's storage are used, uploads in
	// progress included, and Limit how many it has.
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// MediaObject is a stored object.
type MediaObject struct {
	URL       string `json:"url"`
	Size      int64  `json:"size"` // bytes
	CreatedAt string `json:"createdAt"`
	ExpiresAt string `json:"expiresAt"`
}

// MediaScheme is the beginning of every media location.
const MediaScheme = "media://"

// MaxMediaURL is the maximum length of a media location, in characters.
const MaxMediaURL = 255

var mediaURL = regexp.MustCompile(`\A` + MediaScheme + `[A-Za-z0-9\-_./]+\z`)

// Invalid returns the body of a 400 about one field. The field "" is the request
// body as a whole and is called "body".
func Invalid(field, format string, args ...any) *ValidationErrorResponse {
	if field == "" {
		field = "body"
	}
	return &ValidationErrorResponse{
		Message: "Invalid request",
		Errors:  []ValidationError{{Field: field, Message: fmt.Sprintf(format, args...)}},
	}
}

// ValidateInput checks the body of POST /v1/live: empty, or one JSON object. It
// returns the object in compact form, "{}" for an empty body, or the body of a
// 400.
func ValidateInput(body []byte) (json.RawMessage, *ValidationErrorResponse) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return json.RawMessage("{}"), nil
	}
	if bad := checkObject(body); bad != nil {
		return nil, bad
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, body) // it is valid
	return compact.Bytes(), nil
}

// ParseMediaLocation parses and checks the body of the media operations.
func ParseMediaLocation(body []byte) (MediaLocation, *ValidationErrorResponse) {
	if bad := checkObject(bytes.TrimSpace(body)); bad != nil {
		return MediaLocation{}, bad
	}
	f := fieldsOf(body)
	m := MediaLocation{f.required("url")}
	if bad := f.invalid(); bad != nil {
		return m, bad
	}
	return m, m.Validate()
}

// Validate checks the length and pattern of the location; nil = valid.
func (m MediaLocation) Validate() *ValidationErrorResponse {
	switch {
	case m.URL == "":
		return Invalid("url", "is required")
	case utf8.RuneCountInString(m.URL) > MaxMediaURL:
		return Invalid("url", "must have at most %d characters", MaxMediaURL)
	case !mediaURL.MatchString(m.URL):
		return Invalid("url", "must be media:// followed by letters, digits, '-', '_', '.' or '/'")
	}
	return nil
}

func checkObject(body []byte) *ValidationErrorResponse {
	// The object is stored and returned inside of another one, which has to be readable, too:
	// package json reads 10,000 levels.
	inside := slices.Concat([]byte("["), body, []byte("]"))
	switch {
	case len(body) == 0:
		return Invalid("", "is missing; it must be a JSON object")
	case !utf8.Valid(body):
		return Invalid("", "is not valid UTF-8")
	case !json.Valid(body), !json.Valid(inside):
		return Invalid("", "is not valid JSON, or nested too deeply")
	case body[0] != '{':
		return Invalid("", "must be a JSON object")
	}
	return nil
}
