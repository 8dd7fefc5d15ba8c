package protocol

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLabelRunes is how long a label is shown at most.
const MaxLabelRunes = 64

// NoLabel stands for a label that is empty or has nothing printable.
const NoLabel = "UNKNOWN"

// SpeakerLabel is the label of the i-th speaker of a session, counted from 0.
func SpeakerLabel(i int) string { return fmt.Sprintf("SPEAKER_%02d", i) }

// Label makes a speaker's label fit to be shown and written down: control,
// formatting and bidirectional characters are taken out, because a label comes
// from a network and goes to a terminal; white space becomes one space; what
// is longer than MaxLabelRunes is cut. An empty rest becomes NoLabel.
//
// Label(Label(s)) == Label(s).
func Label(s string) string {
	if plainLabel(s) {
		return s
	}
	if s = Clean(s, MaxLabelRunes); s == "" {
		return NoLabel
	}
	return s
}

// plainLabel reports whether s needs no treatment, without allocating.
func plainLabel(s string) bool {
	if s == "" || len(s) > MaxLabelRunes {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Clean makes text from a network fit for one line of a terminal: nothing but
// printable characters, the joiners that these need, and single spaces, at most
// maxRunes of them. Text that was cut ends in "..." within that length.
func Clean(s string, maxRunes int) string {
	var b strings.Builder
	n, space, cut := 0, false, false
	last := rune(0) // written, and no variation selector
	for i, r := range s {
		switch {
		case IsJoiner(r):
			if next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):]); space || !Joins(last, r, next) {
				continue
			}
		case unicode.IsSpace(r):
			space = n > 0
			continue
		case r == utf8.RuneError || !unicode.IsPrint(r):
			continue
		}
		if space {
			b.WriteByte(' ')
			n, space = n+1, false
		}
		b.WriteRune(r)
		if !unicode.Is(unicode.Variation_Selector, r) {
			last = r
		}
		if n++; n > maxRunes {
			cut = true
			break
		}
	}
	if !cut {
		return b.String()
	}
	keep := []rune(b.String())[:max(0, maxRunes-3)]
	return strings.TrimRight(string(keep), " "+string(zwnj)+string(zwj)) + "..."[:min(3, maxRunes)]
}
