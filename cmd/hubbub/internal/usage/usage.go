// Package usage makes the errors of wrong usage: of the command line, the
// environment or the settings file. The exit code of the program is then 2.
package usage

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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

// Similar are the names that a misspelt one may mean.
func Similar(name string, names []string) []string {
	list := &cobra.Command{}
	for _, n := range names {
		list.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	return SimilarCommands(name, list)
}

// SimilarCommands are the commands of a group that a misspelt name may mean.
func SimilarCommands(name string, group *cobra.Command) (similar []string) {
	for distance := 1; name != "" && len(similar) == 0 && distance <= 2; distance++ { // 2: exchanged letters
		group.SuggestionsMinimumDistance = distance
		similar = group.SuggestionsFor(name)
	}
	return similar
}
