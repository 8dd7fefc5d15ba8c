package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestJSONCannotControlATerminal: JSON has nothing that a terminal obeys, that turns text around
// or that ends a line for some programs. What is decoded is the same.
func TestJSONCannotControlATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\u009b31m\u009d0;x\u009c\u0085\x7fb": `"a\u009b31m\u009d0;x\u009c\u0085\u007fb"`,
		"\u202eabc\u2066\u200f\u061c\u2029":    `"\u202eabc\u2066\u200f\u061c\u2029"`,
		"é 雷 <&> \u200d\u200c 👩\u200d👧":        "\"é 雷 <&> \u200d\u200c 👩\u200d👧\"",
	} {
		if line, err := MarshalLine(text); string(line) != want || err != nil {
			t.Fatalf("%q is written as %s, want %s; %v", text, line, want, err)
		}
	}
	texts := rapid.SliceOf(rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("a\\\"\n\x7f\u0085\u009b\u202e\u2028")))))
	rapid.Check(t, func(rt *rapid.T) {
		v := texts.Draw(rt, "texts")
		var indented bytes.Buffer
		line, err := MarshalLine(v)
		if err != nil || WriteJSON(&indented, v) != nil {
			rt.Fatal(err)
		}
		plain, _ := json.Marshal(v)
		for _, raw := range [][]byte{line, indented.Bytes(), OneLine(plain)} {
			var read []string
			if err := json.Unmarshal(raw, &read); err != nil || !reflect.DeepEqual(read, v) {
				rt.Errorf("%q was written as %s and read as %q; %v", v, raw, read, err)
			}
			if bytes.ContainsAny(raw, "\x7f\u0080\u0085\u009b\u009d\u202e\u2028") {
				rt.Errorf("%q", raw)
			}
		}
	})
}
