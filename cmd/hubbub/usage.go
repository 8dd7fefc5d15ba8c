package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is wrong usage of the command line, the environment or the settings
// file; the exit code is 2.
type usageError struct {
	msg  string
	hint string
}

func (e *usageError) Error() string { return e.msg }
func (e *usageError) Hint() string  { return e.hint }

// seeFlags is the hint of a wrong combination of flags.
func seeFlags(cmd *cobra.Command) string {
	return fmt.Sprintf("Run '%s --help' for the flags.", cmd.CommandPath())
}

// flagError makes a usageError of an error of pflag, with the flag of the nearest
// name.
func flagError(cmd *cobra.Command, err error) error {
	msg := plainReason(err.Error())
	hint := seeFlags(cmd)
	if name, ok := strings.CutPrefix(msg, "unknown flag: --"); ok {
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if meant := nearest(name, flags); meant != "" {
			hint = fmt.Sprintf("Did you mean --%s? %s", meant, hint)
		}
	}
	return &usageError{msg, hint}
}

// plainReason replaces the words of package strconv in the error of a flag.
func plainReason(msg string) string {
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

// oneLine makes a usageError of an error of cobra, whose later lines are
// suggestions.
func oneLine(err error) error {
	first, rest, _ := strings.Cut(err.Error(), "\n")
	hint := "Run 'hubbub --help' for the commands."
	if words := strings.Fields(rest); len(words) > 0 {
		// cobra writes: "Did you mean this?", then one suggestion per line.
		if i := strings.Index(rest, "?"); i >= 0 {
			hint = "Did you mean " + strings.Join(strings.Fields(rest[i+1:]), " or ") + "? " + hint
		}
	}
	return &usageError{first, hint}
}

// noArgs rejects arguments that are no flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{
		fmt.Sprintf("%s takes no argument %q", cmd.CommandPath(), args[0]),
		seeFlags(cmd),
	}
}

// exactArgs requires one argument for each name.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return &usageError{
			fmt.Sprintf("%s needs %s", cmd.CommandPath(), strings.Join(names, " and ")),
			fmt.Sprintf("Usage: %s", cmd.UseLine()),
		}
	}
}

// nearest is the one of some names that a misspelt one may mean; "" = none.
func nearest(name string, names []string) (meant string) {
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
