package display

import (
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestTerminalSafe(t *testing.T) {
	for in, want := range map[string]string{
		"SPEAKER_00":                            "SPEAKER_00",
		"\x1b[31mred\x1b[0m":                    "red",
		"\x1b]0;title\x07name":                  "name",
		"a\x00b\x07c\x7fd":                      "abcd",
		"two\nlines\r\nhere":                    "two lines  here",
		"\u202eright to left":                   "right to left",
		"zero\u200bwidth\u200djoined":           "zerowidthjoined",
		"می\u200cخواهم":                         "می\u200cخواهم",
		"ක\u200d\u200dර a\u200db":               "ක\u200dර ab",
		"👨\u200d👩\u200d👧 \u200d👧":               "👨\u200d👩\u200d👧 👧",
		"🏳\ufe0f\u200d🌈 a\ufe0fb ❤\ufe0f\ufe0f": "🏳\ufe0f\u200d🌈 ab ❤\ufe0f",
		"❤\ufe0e ❤\ufe01":                       "❤\ufe0e ❤",
		"c1\u009b31mcsi":                        "c131mcsi", // harmless without its introducer
		"Zoë 李雷":                                "Zoë 李雷",
		"broken \xff utf-8":                     "broken \uFFFD utf-8",
		"\x1bPdevice control\x1b\\string":       "string",
	} {
		if got := TerminalSafe(in); got != want {
			t.Errorf("TerminalSafe(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTerminalSafeLeavesNothingThatMovesACursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := TerminalSafe(rapid.String().Draw(t, "s") + string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		for _, r := range s {
			if unicode.IsControl(r) {
				t.Fatalf("%q still has %U", s, r)
			}
		}
	})
}

func TestTimes(t *testing.T) {
	for s, want := range map[float64]string{0: "0:00", 9.99: "0:09", 60: "1:00", 3599.9: "59:59", 3600: "1:00:00", 36061: "10:01:01", -4: "0:00"} {
		if got := Clock(s); got != want {
			t.Errorf("clock(%v) = %s, want %s", s, got, want)
		}
	}
	for s, want := range map[float64]string{0: "0:00.0", 10.96: "0:10.9", 0.3: "0:00.3", 1.1: "0:01.1", 59.99: "0:59.9", -4: "0:00.0"} {
		if got := ClockTenths(s); got != want {
			t.Errorf("clockTenths(%v) = %s, want %s", s, got, want)
		}
	}
	for s, want := range map[float64]string{0: "00:00:00.000", 1.24: "00:00:01.240", 59.9996: "00:01:00.000", 360000: "100:00:00.000"} {
		if got := ClockMillis(s); got != want {
			t.Errorf("clockMillis(%v) = %s, want %s", s, got, want)
		}
	}
}
