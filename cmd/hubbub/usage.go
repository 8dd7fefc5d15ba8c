package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a command line that makes no sense; it exits with 2.
type usageError struct {
	msg  string
	hint string
}

func (e *usageError) Error() string { return e.msg }
func (e *usageError) Hint() string  { return e.hint }

// failure is an error with what to do about it.
type failure struct {
	err  error
	hint string
}

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }
func (e *failure) Hint() string  { return e.hint }

// firstOf is the first error that is one: the cause, where the others follow
// from it.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// flagError makes a usageError of what pflag says, with the flag that was
// probably meant.
func flagError(cmd *cobra.Command, err error) error {
	msg := err.Error()
	hint := fmt.Sprintf("Run '%s --help' for the flags.", cmd.CommandPath())
	var meant string
	if name, ok := strings.CutPrefix(msg, "unknown flag: --"); ok {
		best := 3
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if d := editDistance(name, f.Name); d < best {
				best, meant = d, f.Name
			}
		})
	}
	if meant != "" {
		hint = fmt.Sprintf("Did you mean --%s? %s", meant, hint)
	}
	return &usageError{msg, hint}
}

// oneLine makes a usageError of cobra's own errors, which may be several lines
// with suggestions on the later ones.
func oneLine(err error) error {
	first, rest, _ := strings.Cut(err.Error(), "\n")
	hint := "Run 'hubbub --help' for the commands."
	if words := strings.Fields(rest); len(words) > 0 {
		// "Did you mean this? / a / b" in cobra's words.
		if i := strings.Index(rest, "?"); i >= 0 {
			hint = "Did you mean " + strings.Join(strings.Fields(rest[i+1:]), " or ") + "? " + hint
		}
	}
	return &usageError{first, hint}
}

// noArgs refuses arguments that are no flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{
		fmt.Sprintf("%s takes no argument %q", cmd.CommandPath(), args[0]),
		fmt.Sprintf("Run '%s --help' for its flags.", cmd.CommandPath()),
	}
}

// exactArgs refuses any other number of arguments than the names it lists.
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

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "word" }
func (c *choice) Set(s string) error {
	for _, a := range c.allowed {
		if s == a {
			c.value = s
			return nil
		}
	}
	return fmt.Errorf("must be one of %s", strings.Join(c.allowed, ", "))
}

// span is a flag that takes a length of time inside bounds: 1s, 500ms, or a
// plain number of seconds.
type span struct {
	value    time.Duration
	min, max time.Duration
	given    bool // by somebody: not the default
}

func (d *span) String() string { return d.value.String() }
func (d *span) Type() string   { return "duration" }
func (d *span) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		seconds, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || !(seconds > -1e6 && seconds < 1e6) {
			return fmt.Errorf("must be a time such as 1s or 500ms")
		}
		v = time.Duration(seconds * float64(time.Second))
	}
	if v < d.min || v > d.max {
		return fmt.Errorf("must be between %v and %v", d.min, d.max)
	}
	d.value, d.given = v, true
	return nil
}

// count is a flag that takes a whole number inside bounds.
type count struct {
	value    int
	min, max int
}

func (c *count) String() string { return strconv.Itoa(c.value) }
func (c *count) Type() string   { return "int" }
func (c *count) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil || v < c.min || v > c.max {
		return fmt.Errorf("must be a whole number from %d to %d", c.min, c.max)
	}
	c.value = v
	return nil
}
