package protocol

import (
	"bytes"
	"encoding/json"
	"io"
)

// WriteJSON writes v as indented JSON without HTML escapes: the form of reports
// and exports.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// MarshalLine returns v as one line of JSON without HTML escapes and without a
// line break at its end.
func MarshalLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// OneLine returns a copy of raw as one line of valid JSON: line breaks become
// spaces, and what is not JSON becomes a JSON string.
func OneLine(raw []byte) json.RawMessage {
	raw = bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("\uFFFD"))
	if !json.Valid(raw) {
		text, _ := json.Marshal(string(raw)) // strings always marshal
		return text
	}
	for i, c := range raw { // in valid JSON a bare line break is only ever between tokens
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
	return raw
}
