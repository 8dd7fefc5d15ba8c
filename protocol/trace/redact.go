package trace

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hubbub/protocol"
)

// Redactor removes secrets from texts and JSON values: API keys, tokens of
// streams, voiceprints, and the queries of addresses. The zero value knows no
// secret. It is safe for concurrent use.
type Redactor struct {
	mu       sync.Mutex
	words    []string // in the order in which they were added
	replacer *strings.Replacer
}

const redacted = "[redacted]"

// minSecret is the shortest secret that is removed, in bytes: a shorter one would
// be found by chance.
const minSecret = 4

// maxSecrets bounds the secrets that are kept. The oldest is removed, except the
// first, which is the API key.
const maxSecrets = 64

// NewRedactor returns a Redactor that knows the API key.
func NewRedactor(key string) *Redactor {
	r := &Redactor{}
	r.Add(key)
	return r
}

// Add adds a secret; one of fewer than 4 bytes is ignored.
func (r *Redactor) Add(word string) {
	if len(word) < minSecret {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.words, word) {
		return
	}
	if len(r.words) == maxSecrets {
		r.words = slices.Delete(r.words, 1, 2)
	}
	r.words = append(r.words, word)
	// The longest first: one may be a part of another, of which the rest would stay.
	var pairs []string
	for _, w := range slices.SortedFunc(slices.Values(r.words), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, w, redacted)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

// AddQuery adds the values of an address's query, except plain numbers, true and false whose
// name is not that of a secret: a position is no token.
func (r *Redactor) AddQuery(u *url.URL) {
	for name, values := range u.Query() {
		for _, v := range values {
			_, notNumber := strconv.Atoi(v)
			_, notBool := strconv.ParseBool(v)
			if (notNumber == nil || notBool == nil) && !secretField.MatchString(name) {
				continue
			}
			r.Add(v)
			r.Add(url.QueryEscape(v))
		}
	}
}

var (
	// query is the part of an address that may contain a token.
	query = regexp.MustCompile(`(://[^\s"'<>?#]*)[?#][^\s"'<>]*`)
	// secretField matches the name of a field whose value is secret.
	secretField = regexp.MustCompile(`(?i)token|secret|password|authorization|api.?key|voiceprint`)
)

// Text is s without the secrets, and without the query of any address.
func (r *Redactor) Text(s string) string {
	r.mu.Lock()
	replacer := r.replacer
	r.mu.Unlock()
	if replacer != nil {
		s = replacer.Replace(s)
	}
	if strings.Contains(s, "://") {
		s = query.ReplaceAllString(s, "${1}?"+redacted)
	}
	return s
}

// Learn adds the queries of all addresses in a JSON value.
func (r *Redactor) Learn(v any) {
	switch v := v.(type) {
	case string:
		if u, err := url.Parse(v); err == nil && (u.Host != "" || strings.HasPrefix(v, "/")) { // or without scheme and host
			r.AddQuery(u)
		}
	case []any:
		for _, field := range v {
			r.Learn(field)
		}
	case map[string]any:
		for _, field := range v {
			r.Learn(field)
		}
	}
}

// JSON is one line of valid JSON without the secrets. Text without any stays as
// it is, byte by byte.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	text := string(raw)
	if !strings.ContainsRune(text, '\\') && !secretField.MatchString(text) {
		clean := r.Text(text)
		if clean == text {
			return raw
		}
		if json.Valid([]byte(clean)) {
			return json.RawMessage(clean)
		}
	}
	// With escapes a secret may be spelled in many ways: examine decoded values.
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	clean, changed := r.walk(v)
	if !changed {
		return raw
	}
	line, err := protocol.MarshalLine(clean)
	if err != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return line
}

// walk removes the secrets from every string of a JSON value, including names.
func (r *Redactor) walk(v any) (clean any, changed bool) {
	switch v := v.(type) {
	case string:
		s := r.Text(v)
		return s, s != v
	case json.Number:
		if s := r.Text(string(v)); s != string(v) {
			return s, true
		}
		return v, false
	case []any:
		for i := range v {
			var c bool
			v[i], c = r.walk(v[i])
			changed = changed || c
		}
		return v, changed
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, field := range v {
			name := r.Text(k)
			value, c := r.walk(field)
			if text, ok := value.(string); ok && text != "" && secretField.MatchString(k) {
				value, c = redacted, true
			}
			out[name] = value
			changed = changed || c || name != k
		}
		return out, changed
	}
	return v, false
}
