package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// WriteJSON writes v as indented JSON without HTML escapes, and with those of
// escapeControls: the form of reports and exports.
func WriteJSON(w io.Writer, v any) error {
	raw, err := encode(v, "  ")
	if err == nil {
		_, err = w.Write(raw)
	}
	return err
}

// MarshalLine returns v as one line of JSON without HTML escapes, with those of
// escapeControls, and without a line break at its end.
func MarshalLine(v any) ([]byte, error) {
	raw, err := encode(v, "")
	return bytes.TrimSuffix(raw, []byte("\n")), err
}

func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return escapeControls(b.Bytes()), err
}

// escapeControls writes the characters of JSON as escapes that a terminal may obey, that
// change the direction of text, or that end a line for some programs. Below U+007F, JSON
// itself requires that.
func escapeControls(raw []byte) []byte {
	control := func(r rune) bool {
		return r >= 0x7f && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp))
	}
	if !bytes.ContainsFunc(raw, control) {
		return raw
	}
	var escaped []byte
	for _, r := range string(raw) {
		if control(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped
}

// OneLine returns a copy of raw as one line of valid JSON: line breaks become
// spaces, control characters escapes, and what is not JSON becomes a JSON string.
func OneLine(raw []byte) json.RawMessage {
	raw = bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("\uFFFD"))
	if !json.Valid(raw) {
		raw, _ = json.Marshal(string(raw)) // strings always marshal
	}
	for i, c := range raw { // in valid JSON a bare line break is only ever between tokens
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
	return escapeControls(raw)
}
