package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// EndOfStreamMessage is the one text message that a client may send.
const EndOfStreamMessage = `{"type":"end_of_stream"}`

// MaxMediaURL is the longest media location, in characters.
const MaxMediaURL = 255

var mediaURL = regexp.MustCompile(`\Amedia://[A-Za-z0-9\-_./]+\z`)

// Invalid builds the body of a 400 about one field. A field of "" is the
// request body as a whole and is called "body".
func Invalid(field, format string, args ...any) *ValidationErrorResponse {
	if field == "" {
		field = "body"
	}
	return &ValidationErrorResponse{
		Message: "Invalid request",
		Errors:  []ValidationError{{Field: field, Message: fmt.Sprintf(format, args...)}},
	}
}

// ValidateInput checks the body of POST /v1/live: nothing, or any one JSON
// object. It returns the object in compact form, "{}" for nothing; or, with a
// nil object, what is wrong.
func ValidateInput(body []byte) (json.RawMessage, *ValidationErrorResponse) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return json.RawMessage("{}"), nil
	}
	if bad := checkObject(body); bad != nil {
		return nil, bad
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return nil, Invalid("", "is not valid JSON")
	}
	return compact.Bytes(), nil
}

// ParseMediaLocation reads and checks the body of the media operations.
func ParseMediaLocation(body []byte) (MediaLocation, *ValidationErrorResponse) {
	var m MediaLocation
	if bad := checkObject(bytes.TrimSpace(body)); bad != nil {
		return m, bad
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return m, Invalid("", "is not valid JSON")
	}
	raw, ok := fields["url"]
	if !ok {
		return m, Invalid("url", "is required")
	}
	var url *string
	if err := json.Unmarshal(raw, &url); err != nil || url == nil {
		return m, Invalid("url", "must be a string")
	}
	m.URL = *url
	return m, m.Validate()
}

// Validate checks length and pattern of the location; nil means that both are
// right.
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
	switch {
	case len(body) == 0:
		return Invalid("", "is missing; it must be a JSON object")
	case !utf8.Valid(body):
		return Invalid("", "is not valid UTF-8")
	case !json.Valid(body):
		return Invalid("", "is not valid JSON")
	case body[0] != '{':
		return Invalid("", "must be a JSON object")
	}
	return nil
}

// ParseClientMessage checks a text message of a client. Only an object whose
// "type" is "end_of_stream" is legal; the text of the error is fit to be sent
// back to the client in an error message.
func ParseClientMessage(text []byte) error {
	var fields map[string]json.RawMessage // exact names: a struct would also take "TYPE"
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		//lint:ignore ST1005 a server sends this text as it is
		return errors.New("Text message is not a JSON object; audio goes in binary frames")
	}
	raw, ok := fields["type"]
	if !ok {
		//lint:ignore ST1005 a server sends this text as it is
		return errors.New("Text message has no field type")
	}
	var typ *string
	if err := json.Unmarshal(raw, &typ); err != nil || typ == nil {
		//lint:ignore ST1005 a server sends this text as it is
		return errors.New("Field type of a text message must be a string")
	}
	if *typ != TypeEndOfStream {
		//lint:ignore ST1005 a server sends this text as it is
		return fmt.Errorf("Unknown message type %q; only %q is accepted", Clean(*typ, 40), TypeEndOfStream)
	}
	return nil
}
