package protocol

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// hinted is an error that carries what to do next.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// Hint says in one line what to do next.
func (h *hinted) Hint() string { return h.hint }

func withHint(hint, format string, args ...any) error {
	return &hinted{err: fmt.Errorf(format, args...), hint: hint}
}

// hintOf is the hint that err carries, or "".
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// FieldError is what a service says of one field of a request.
type FieldError struct {
	Field   string
	Message string
}

// APIError is an answer of a service, to an HTTP request or to a WebSocket
// handshake, that is not the success asked for. Its texts come from the
// network and have been made fit for a terminal.
type APIError struct {
	Status    int    // HTTP status
	RequestID string // of the service's log; "" where it gave none
	Message   string // one line; never empty
	Fields    []FieldError
	// RetryAfter is how long the service asks to wait; 0 where it did not say.
	RetryAfter time.Duration

	hint string // where the client knows better than the status tells
}

// Error is one line: status, message, fields, request id.
func (e *APIError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the service answered %d", e.Status)
	if text := http.StatusText(e.Status); text != "" && !strings.EqualFold(text, e.Message) {
		b.WriteString(" " + text)
	}
	b.WriteString(": " + e.Message)
	for i, f := range e.Fields {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + f.Field + " " + f.Message)
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// Hint says in plain words what to do about the status.
func (e *APIError) Hint() string {
	if e.hint != "" {
		return e.hint
	}
	switch s := e.Status; {
	case s == http.StatusBadRequest:
		return "the service does not accept this request; client and service may be of different versions"
	case s == http.StatusUnauthorized:
		return "check the API key (--api-key or HUBBUB_API_KEY): it is missing, wrong or expired"
	case s == http.StatusPaymentRequired:
		return "the account of this API key has no subscription; take one out or use another key"
	case s == http.StatusForbidden:
		return "this API key may not do that; use another key"
	case s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		return "check the address (--server): the service is not there under this name and path"
	case s == http.StatusTooManyRequests:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("too many requests; wait %s and try again", e.RetryAfter.Round(time.Second))
		}
		return "too many requests or streams at once; wait a minute and try again"
	case s == http.StatusServiceUnavailable && e.RetryAfter > 0:
		return fmt.Sprintf("the service is not ready; try again in %s", e.RetryAfter.Round(time.Second))
	case s >= 500:
		return "the fault is the service's; try again later, and give its operator the request id if there is one"
	case s >= 300 && s < 400:
		return "the service has moved; give its new address with --server"
	}
	return "check the address (--server) and the API key (--api-key)"
}
