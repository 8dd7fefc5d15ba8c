package protocol

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestLabel(t *testing.T) {
	long := strings.Repeat("x", 100)
	for in, want := range map[string]string{
		"SPEAKER_00":               "SPEAKER_00",
		"":                         NoLabel,
		"\x00\x07":                 NoLabel,
		" \t\n":                    NoLabel,
		"Zoë":                      "Zoë",
		"話者 1":                     "話者 1",
		"a\x1b[31mb":               "a[31mb",
		"a\u009b31mb":              "a31mb",
		"left\u202eright\u2066":    "leftright",
		"two\t lines\r\nof   text": "two lines of text",
		"bad\xffutf8":              "badutf8",
		// Joiners stay where they have an effect.
		"An\u200dna\u200c ":                    "Anna",
		"\u0645\u06cc\u200c\u0634\u0648\u062f": "\u0645\u06cc\u200c\u0634\u0648\u062f",
		"\u0645\u06cc \u200c\u0634":            "\u0645\u06cc \u0634",
		"\u2764\ufe0f\u200d\U0001f525":         "\u2764\ufe0f\u200d\U0001f525",
		"\u2764\u200c\U0001f525":               "\u2764\U0001f525",
		"\u2764\u200dx":                        "\u2764x",
		"x\u200d\u2764":                        "x\u2764",
		"\u0645\u200dx":                        "\u0645x",
		"\u2764\u200d":                         "\u2764",
		"\u2764\u200d\xffx":                    "\u2764x",
		// Variation selectors stay: of a Japanese name, a key, a punctuation mark.
		"\u845b\U000e0100\u57ce":    "\u845b\U000e0100\u57ce",
		"1\ufe0f\u20e3\u203c\ufe0f": "1\ufe0f\u20e3\u203c\ufe0f",
		long:                        strings.Repeat("x", 61) + "...",
	} {
		if got := Label(in); got != want {
			t.Errorf("Label(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLabelIsSafeAndStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		joined := rapid.StringOf(rapid.RuneFrom([]rune(" a\u0301\u0645\u06cc\u0915\u200c\u200d\u2764\ufe0f\ufffd\u202e\U0001f525\U0001f3fd\U000e0041")))
		in := rapid.OneOf(rapid.String(), joined, rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "label")
		got := Label(in)
		if n := utf8.RuneCountInString(got); n == 0 || n > MaxLabelRunes {
			t.Fatalf("Label(%q) has %d characters", in, n)
		}
		if strings.ContainsAny(got, "\x00\x1b\n\r\t\x7f\u009b\u202e\u2066") || !utf8.ValidString(got) {
			t.Fatalf("Label(%q) = %q", in, got)
		}
		if again := Label(got); again != got {
			t.Fatalf("Label(%q) = %q, and of that %q", in, got, again)
		}
	})
}

func TestCleanHoldsItsLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, n := rapid.String().Draw(t, "text"), rapid.IntRange(0, 12).Draw(t, "length")
		if got := Clean(in, n); utf8.RuneCountInString(got) > n {
			t.Fatalf("Clean(%q, %d) = %q", in, n, got)
		}
	})
}
