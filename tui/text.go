package tui

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes text from a network or a file name safe for a terminal: escape
// sequences and control characters go, and so do the invisible characters
// that reorder or join what stands around them; line breaks become spaces.
func Clean(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	s = ansi.Strip(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r),
			unicode.Is(unicode.Co, r), unicode.Is(unicode.Variation_Selector, r):
			return -1
		}
		return r
	}, s)
}

// stamp is a position in seconds as hh:mm:ss.mmm.
func stamp(seconds float64) string {
	ms := int64(math.Round(max(seconds, 0) * 1000))
	return fmt.Sprintf("%02d:%02d:%02d.%03d", ms/3600000, ms/60000%60, ms/1000%60, ms%1000)
}

// clock is a position or length in seconds as people say it: m:ss, or h:mm:ss
// from one hour on. It counts whole seconds that have passed.
func clock(seconds float64) string {
	s := int64(math.Floor(max(seconds, 0) + 1e-9))
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// talkTime is a length in seconds, rounded: who said a word has talked.
func talkTime(seconds float64) string { return clock(seconds + 0.5) }

// fit cuts text to a width in cells. The cut is in the middle, because labels
// tend to differ at their ends; tail is how many cells of the end are kept.
func fit(s string, width, tail int, ellipsis string) string {
	w := ansi.StringWidth(s)
	if w <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	if tail = min(tail, width-2); tail > 0 {
		cut := ansi.Truncate(s, width-tail, ellipsis) + ansi.TruncateLeft(s, w-tail, "")
		// Characters that join their neighbours can come out wider apart.
		if ansi.StringWidth(cut) <= width {
			return cut
		}
	}
	return ansi.Truncate(s, width, ellipsis)
}
