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
	return cmp.Or(Clean(s, MaxLabelRunes), NoLabel)
}

// Clean cleans text from a network for one line of a terminal: it keeps printable
// characters, the joiners that they need, and single spaces, at most maxRunes of
// them. Text that was cut ends in "..." within that length.
func Clean(s string, maxRunes int) string {
	var b strings.Builder
	n, space, cut := 0, false, false
	last := rune(0) // written last, variation selectors excluded
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

// Joins reports whether a joiner between two characters, variation selectors
// excluded, has an effect. Without one, two different names could look the same.
func Joins(before, joiner, after rune) bool {
	if after == utf8.RuneError || !unicode.IsPrint(after) { // at the end of a text, or removed
		return false
	}
	if joiner == zwj && unicode.IsSymbol(before) && unicode.IsSymbol(after) {
		return true
	}
	return unicode.In(before, joining...) && unicode.In(after, joining...)
}
