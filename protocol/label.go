package protocol

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLabelRunes is the maximum length of a label, in characters.
const MaxLabelRunes = 64

// NoLabel replaces a label that is empty or has nothing printable.
const NoLabel = "UNKNOWN"

// SpeakerLabel is the label of the i-th speaker of a session, counted from 0.
func SpeakerLabel(i int) string { return fmt.Sprintf("SPEAKER_%02d", i) }

// Label cleans the label of a speaker, which comes from a network and goes to a
// terminal: control, formatting and bidirectional characters are removed, white
// space becomes one space, and a label longer than MaxLabelRunes is cut. An empty
// result becomes NoLabel.
//
// Label(Label(s)) == Label(s).
func Label(s string) string {
	if plainLabel(s) {
		return s
	}
	return cmp.Or(Clean(s, MaxLabelRunes), NoLabel)
}

// plainLabel reports whether s is clean already, without allocating.
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

// Clean cleans text from a network for one line of a terminal: it is Printable, with single
// spaces, at most maxRunes characters of it. Text that was cut ends in "..." within that
// length.
func Clean(s string, maxRunes int) string {
	s = strings.Join(strings.Fields(Printable(strings.ToValidUTF8(s, ""))), " ")
	if utf8.RuneCountInString(s) <= maxRunes {
		return s
	}
	keep := string([]rune(s)[:max(0, maxRunes-3)])
	return strings.TrimRight(keep, " "+string(zwnj)+string(zwj)) + "..."[:min(3, maxRunes)]
}

// Printable is what a terminal can show of a text on one line: its printable characters, and the
// invisible ones that they need. White space becomes blanks.
func Printable(s string) string {
	runes := []rune(s)
	kept := make([]rune, 0, len(runes))
	last := rune(0) // of kept, variation selectors left out
	for i, r := range runes {
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case IsJoiner(r):
			if i+1 == len(runes) || !joins(last, r, runes[i+1]) {
				continue
			}
		case unicode.Is(unicode.Variation_Selector, r):
			// After a symbol it selects its text or its emoji form.
			if unicode.IsSymbol(last) && kept[len(kept)-1] == last && (r == '\ufe0e' || r == '\ufe0f') {
				kept = append(kept, r)
			}
			continue
		case !unicode.IsPrint(r):
			continue
		}
		kept = append(kept, r)
		last = r
	}
	return string(kept)
}

// The joiners are invisible characters with an effect: in some scripts they change
// the shape of letters, and they combine several emoji into one.
const (
	zwnj = '\u200c' // zero width non-joiner
	zwj  = '\u200d' // zero width joiner
)

// joining are the scripts in which a joiner has an effect.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
	unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}

// IsJoiner reports whether r is a joiner.
func IsJoiner(r rune) bool { return r == zwnj || r == zwj }

// joins reports whether a joiner between two characters, variation selectors
// excluded, has an effect. Without one, two different names could look the same.
func joins(before, joiner, after rune) bool {
	if !unicode.IsPrint(after) {
		return false
	}
	if joiner == zwj && unicode.IsSymbol(before) && unicode.IsSymbol(after) {
		return true
	}
	return unicode.In(before, joining...) && unicode.In(after, joining...)
}
