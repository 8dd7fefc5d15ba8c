package tui

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
)

// Clean makes text from a network or a file name safe for a terminal: escape
// sequences and control characters go, and so do the invisible characters
// that reorder what stands around them or hide; line breaks become spaces.
// Joiners stay where scripts and emoji need them.
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
	runes := []rune(ansi.Strip(strings.ToValidUTF8(s, "\uFFFD")))
	kept := make([]rune, 0, len(runes))
	last := rune(0) // kept, and no variation selector
	for i, r := range runes {
		next := rune(0)
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			r = ' '
		case protocol.IsJoiner(r):
			if !protocol.Joins(last, r, next) {
				continue
			}
		case unicode.Is(unicode.Variation_Selector, r):
			// One that follows a symbol chooses between its text and its picture.
			if !unicode.IsSymbol(last) || r != '\ufe0e' && r != '\ufe0f' || len(kept) > 0 && kept[len(kept)-1] != last {
				continue
			}
			kept = append(kept, r)
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), unicode.Is(unicode.Co, r):
			continue
		}
		kept = append(kept, r)
		last = r
	}
	return string(kept)
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
