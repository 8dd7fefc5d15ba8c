// Package usage makes the errors of wrong usage: of the command line, the
// environment or the settings file. The exit code of the program is then 2.
package usage

import (
	"errors"
	"strconv"
	"strings"

	"hubbub/protocol/hint"
)

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Error is wrong usage, and what to do about it.
func Error(msg, fix string) error { return usageError{hint.Add(errors.New(msg), fix)} }

// Of makes wrong usage of an error and its hint.
func Of(err error) error { return Error(err.Error(), hint.Of(err)) }

// Is reports whether an error is, or wraps, one of wrong usage.
func Is(err error) bool {
	return errors.As(err, new(usageError))
}

// PlainReason replaces the words of package strconv in the error of a flag.
func PlainReason(msg string) string {
	before, kind, found := strings.Cut(msg, "strconv.Parse")
	switch {
	case !found:
		return msg
	case strings.HasPrefix(kind, "Bool"):
		return before + "must be true or false"
	case strings.HasSuffix(kind, strconv.ErrRange.Error()):
		return before + "is out of range"
	}
	return before + "must be a whole number"
}

// Nearest is the one of some names that a misspelt one may mean; "" = none.
func Nearest(name string, names []string) (meant string) {
	best := 3
	for _, other := range names {
		if d := editDistance(name, other); d < best {
			best, meant = d, other
		}
	}
	return meant
}

// editDistance is the Levenshtein distance of two short words.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
