package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

const (
	testKey   = "secret-key-8c1f"
	testToken = "tok/en+5f.8=1c"
)

func TestRedactor(t *testing.T) {
	r := NewRedactor("k3y")
	testkit.Equal(t, r.Text("k3y"), "k3y", "a key of three characters is found by chance")
	r = NewRedactor(testKey)
	r.Add(testToken)
	for raw, want := range map[string]string{
		`{"a":"b"}`:                            `{"a":"b"}`,
		`{"a": 1.50,"b":"\u00e9"}`:             `{"a": 1.50,"b":"\u00e9"}`, // as it came, byte by byte
		`{"a":"` + testKey + `"}`:              `{"a":"[redacted]"}`,
		`["` + testToken + `"]`:                `["[redacted]"]`,
		`{"` + testKey + `":1.50}`:             `{"[redacted]":1.50}`,
		`["tok\/en\u002b5f.8=1c",2]`:           `["[redacted]",2]`,
		`{"url":"wss:\/\/h\/p?token=new&x=1"}`: `{"url":"wss://h/p?[redacted]"}`,
		`{"url":"wss://h/p?token=new&x=1"}`:    `{"url":"wss://h/p?[redacted]"}`,
		`{"url":"wss://h/p#token=new"}`:        `{"url":"wss://h/p?[redacted]"}`,
		`{"accessToken":"unheard-of"}`:         `{"accessToken":"[redacted]"}`,
		`{"x":"<b>&","y":"\n` + testKey + `"}`: `{"x":"<b>&","y":"\n[redacted]"}`,
		`"plain text"`:                         `"plain text"`,
	} {
		if got := string(r.JSON(json.RawMessage(raw))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", raw, got, want)
		}
	}
	r.Learn(map[string]any{"url": "/stream?token=without-a-host", "text": "?token=of-a-text"})
	testkit.Equal(t, r.Text("without-a-host, of-a-text"), "[redacted], of-a-text")
	r.Learn("wss://h/p?from=12345&words=true&token=987654&x=abc%2Fdef")
	testkit.Equal(t, r.Text("12345 true 987654 abc/def abc%2Fdef"), "12345 true [redacted] [redacted] [redacted]")
	r.Learn("wss://h/p?id=session-7&token=session-7.signature")
	if got := r.Text("session-7.signature"); got != redacted {
		t.Errorf("of a token that begins as another value, %q is left", got)
	}
	for i := range 10 * maxSecrets {
		r.Add(fmt.Sprintf("secret-%d", i))
	}
	if got := r.Text(testKey); len(r.words) > maxSecrets || got != redacted {
		t.Errorf("%d words, and the key reads %q", len(r.words), got)
	}
}

// FuzzRedactor looks for a spelling in which the key gets through.
func FuzzRedactor(f *testing.F) {
	f.Add(`{"a":"%s"}`, "x")
	f.Add(`"%s"`, `\u0073`)
	f.Add(`{"%s":["%s",{"token":"%s"}]}`, "://")
	f.Add(`{"a":1e999,"b":"%s"}`, "x")
	f.Fuzz(func(t *testing.T, form, extra string) {
		r := NewRedactor(testKey)
		raw := protocol.OneLine([]byte(strings.ReplaceAll(form, "%s", extra+testKey)))
		clean := r.JSON(raw)
		var v any
		d := json.NewDecoder(bytes.NewReader(clean))
		d.UseNumber() // 1e999 is JSON
		if err := d.Decode(&v); err != nil || !json.Valid(clean) {
			t.Fatalf("%q became %q: %v", raw, clean, err)
		}
		if strings.Contains(string(clean), testKey) || strings.Contains(fmt.Sprint(v), testKey) {
			t.Errorf("%q became %q", raw, clean)
		}
	})
}
