package protocol

import (
	"encoding/json"
	"fmt"
	"time"
)

// The states of a stream, in the field status of LiveStatus: created, then
// running, then done or error.
const (
	StatusCreated = "created"
	StatusRunning = "running"
	StatusDone    = "done"
	StatusError   = "error"
)

// StatusOK is the success marker in the field status of TestResponse.
const StatusOK = "OK"

// TestResponse is the answer of GET /v1/test.
type TestResponse struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// LiveStream is the answer of POST /v1/live.
type LiveStream struct {
	ID string `json:"id"`
	// URL is the WebSocket address, its single-use token included: whoever
	// holds it holds the stream.
	URL string `json:"url"`
	// Resumed says that the stream goes on with the voices of the one that the
	// request named in its field resume: the same people get the same labels.
	Resumed bool `json:"resumed,omitempty"`
}

// LiveStatus is the answer of GET /v1/live/{id}.
type LiveStatus struct {
	ID string
	// StartedAt and CompletedAt are nil until they happen. They travel in
	// UTC with a resolution of one second.
	StartedAt   *time.Time
	CompletedAt *time.Time
	// Input is the JSON object that the stream was created with.
	Input json.RawMessage
	// Status is one of StatusCreated, StatusRunning, StatusDone, StatusError
	// with this server; others may have more.
	Status string
}

// timeShape is YYYY-MM-DDThh:mm:ssZ for a time in UTC.
const timeShape = "2006-01-02T15:04:05Z"

type wireStatus struct {
	ID          string          `json:"id"`
	StartedAt   *string         `json:"startedAt"`
	CompletedAt *string         `json:"completedAt"`
	Input       json.RawMessage `json:"input"`
	Status      string          `json:"status"`
}

// MarshalJSON writes both times always: null until they happen.
func (s LiveStatus) MarshalJSON() ([]byte, error) {
	w := wireStatus{ID: s.ID, Input: s.Input, Status: s.Status,
		StartedAt: formatTime(s.StartedAt), CompletedAt: formatTime(s.CompletedAt)}
	if len(w.Input) == 0 {
		w.Input = json.RawMessage("{}")
	}
	return json.Marshal(w)
}

// UnmarshalJSON takes any RFC 3339 time, and a missing, null or empty one as
// not yet happened.
func (s *LiveStatus) UnmarshalJSON(raw []byte) error {
	var w wireStatus
	err := json.Unmarshal(raw, &w)
	if err != nil {
		return err
	}
	*s = LiveStatus{ID: w.ID, Input: w.Input, Status: w.Status}
	if s.StartedAt, err = parseTime("startedAt", w.StartedAt); err != nil {
		return err
	}
	s.CompletedAt, err = parseTime("completedAt", w.CompletedAt)
	return err
}

func formatTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := t.UTC().Format(timeShape)
	return &s
}

func parseTime(field string, s *string) (*time.Time, error) {
	if s == nil || *s == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339, *s)
	if err != nil {
		return nil, fmt.Errorf("%s %q is not a time like 2006-01-02T15:04:05Z", field, Clean(*s, 40))
	}
	t = t.UTC()
	return &t, nil
}

// ApiError is the body of every HTTP error but 400.
type ApiError struct {
	RequestID string `json:"requestId"`
	Message   string `json:"message"`
}

// ValidationErrorResponse is the body of a 400.
type ValidationErrorResponse struct {
	Message string            `json:"message"`
	Errors  []ValidationError `json:"errors"`
}

// ValidationError says what is wrong with one field of a request.
type ValidationError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// MediaLocation is the body of POST /v1/media/output and /v1/media/input.
type MediaLocation struct {
	URL string `json:"url"`
}
