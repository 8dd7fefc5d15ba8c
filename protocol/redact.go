package protocol

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// redactor takes secrets out of what a Tap gets: the API key, tokens of
// streams, and whatever stands in the query of an address.
type redactor struct {
	mu    sync.Mutex
	words []string
}

const redacted = "[redacted]"

// minSecret is how long a secret must be to be found by anything but chance.
const minSecret = 4

// maxSecrets bounds the tokens that are remembered; the oldest is forgotten,
// the first word, the API key, is not.
const maxSecrets = 64

func newRedactor(key string) *redactor {
	r := &redactor{}
	r.add(key)
	return r
}

func (r *redactor) add(word string) {
	if len(word) < minSecret {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.words {
		if w == word {
			return
		}
	}
	if len(r.words) == maxSecrets {
		r.words = append(r.words[:1], r.words[2:]...)
	}
	r.words = append(r.words, word)
}

// addQuery takes the values of an address's query for secrets, but for plain
// numbers under a name that promises none: a position is no token.
func (r *redactor) addQuery(u *url.URL) {
	for name, values := range u.Query() {
		for _, v := range values {
			if _, err := strconv.Atoi(v); err == nil && !secretField.MatchString(name) {
				continue
			}
			r.add(v)
			r.add(url.QueryEscape(v))
		}
	}
}

var (
	// query is the part of an address that may hold a token.
	query = regexp.MustCompile(`(://[^\s"'<>?#]*)[?#][^\s"'<>]*`)
	// secretField is the name of a field whose value nobody should see.
	secretField = regexp.MustCompile(`(?i)token|secret|password|authorization|api.?key`)
)

// text is s without secrets.
func (r *redactor) text(s string) string {
	r.mu.Lock()
	words := r.words
	r.mu.Unlock()
	for _, w := range words {
		s = strings.ReplaceAll(s, w, redacted)
	}
	if strings.Contains(s, "://") {
		s = query.ReplaceAllString(s, "${1}?"+redacted)
	}
	return s
}

// learn takes for secrets what stands in the query of any address in a JSON
// value.
func (r *redactor) learn(v any) {
	switch v := v.(type) {
	case string:
		if u, err := url.Parse(v); err == nil && u.Host != "" {
			r.addQuery(u)
		}
	case []any:
		for _, field := range v {
			r.learn(field)
		}
	case map[string]any:
		for _, field := range v {
			r.learn(field)
		}
	}
}

// json is one line of valid JSON without secrets. Text that needs no change
// stays as it is, byte by byte.
func (r *redactor) json(raw json.RawMessage) json.RawMessage {
	text := string(raw)
	if !strings.ContainsRune(text, '\\') && !secretField.MatchString(text) {
		clean := r.text(text)
		if clean == text {
			return raw
		}
		if json.Valid([]byte(clean)) {
			return json.RawMessage(clean)
		}
	}
	// With escapes a secret may be spelled in many ways: look at what is meant.
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
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(clean) != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return bytes.TrimSpace(b.Bytes())
}

// walk takes the secrets out of every string of a JSON value, names included.
func (r *redactor) walk(v any) (clean any, changed bool) {
	switch v := v.(type) {
	case string:
		s := r.text(v)
		return s, s != v
	case json.Number:
		s := r.text(string(v))
		return map[bool]any{true: s, false: v}[s != string(v)], s != string(v)
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
			name := r.text(k)
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
