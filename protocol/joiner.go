package protocol

import "unicode"

// The joiners are invisible characters with a meaning: in some scripts they
// change what is read, and they make one picture of several.
const (
	zwnj = '\u200c' // zero width non-joiner
	zwj  = '\u200d' // zero width joiner
)

// joining are the scripts in which a joiner changes what is read.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
	unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}

// IsJoiner tells the two joiners.
func IsJoiner(r rune) bool { return r == zwnj || r == zwj }

// Joins says whether a joiner between two characters, variation selectors left
// out, does something. One that does nothing only hides: two names could look
// the same.
func Joins(before, joiner, after rune) bool {
	if !unicode.IsPrint(after) {
		return false
	}
	if joiner == zwj && unicode.IsSymbol(before) && unicode.IsSymbol(after) {
		return true
	}
	return unicode.In(before, joining...) && unicode.In(after, joining...)
}
