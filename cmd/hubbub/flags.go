package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/usage"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "word" }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("must be one of %s", strings.Join(c.allowed, ", "))
	}
	c.value = s
	return nil
}

// add adds the flag, whose words are offered to the shell; short = "" is none.
func (c *choice) add(cmd *cobra.Command, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage)
	completeChoices(cmd, name, c.allowed)
}

// parsed is a flag whose text a function reads.
type parsed[T any] struct {
	value T
	parse func(text string) (T, error)
	given bool // on the command line or in the settings
}

func (p *parsed[T]) String() string { return fmt.Sprint(p.value) }
func (p *parsed[T]) Type() string   { return "value" }
func (p *parsed[T]) Set(text string) error {
	v, err := p.parse(text)
	if err == nil {
		p.value, p.given = v, true
	}
	return err
}

// durationFlag is a flag that takes a duration within bounds: 1s, 500ms, or a plain
// number of seconds.
type durationFlag = parsed[time.Duration]

func newDuration(value, least, most time.Duration) durationFlag {
	return durationFlag{value: value, parse: func(text string) (time.Duration, error) {
		v, err := time.ParseDuration(text)
		if err != nil {
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(seconds) {
				return 0, fmt.Errorf("must be a time such as 1s or 500ms, between %v and %v", least, most)
			}
			v = time.Duration(min(max(seconds, -1e9), 1e9) * float64(time.Second)) // within the range of a Duration
		}
		if v < least || v > most {
			return 0, fmt.Errorf("must be between %v and %v", least, most)
		}
		return v, nil
	}}
}

// nonEmpty is a flag that takes a name or an address. An empty one, as of an unset variable of a shell, is an
// error: the program would do something else, such as store nothing.
type nonEmpty string

func (n *nonEmpty) String() string { return string(*n) }
func (n *nonEmpty) Type() string   { return "string" }
func (n *nonEmpty) Set(name string) error {
	if name == "" {
		return errors.New("must not be empty")
	}
	*n = nonEmpty(name)
	return nil
}

// count is a flag that takes a whole number from 1 on.
type count = parsed[int]

func newCount(value, most int) count {
	return count{value: value, parse: func(text string) (int, error) {
		v, err := strconv.Atoi(text)
		if err != nil || v < 1 || v > most {
			return 0, fmt.Errorf("must be a whole number from 1 to %d", most)
		}
		return v, nil
	}}
}

// rate is a flag that takes a number within bounds.
type rate = parsed[float64]

func newRate(value, least, most float64) rate {
	return rate{value: value, parse: func(text string) (float64, error) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= least && v <= most) {
			return 0, fmt.Errorf("must be a number from %g to %g", least, most)
		}
		return v, nil
	}}
}

// size is a number of bytes, at least 1, as a flag takes it: 1000000, 500MB, 64MiB, 1GiB.
type size int64

// sizeUnits are the units in the order in which they are tried.
var sizeUnits = []struct {
	name  string
	bytes size
}{{"gib", 1 << 30}, {"mib", 1 << 20}, {"kib", 1 << 10}, {"gb", 1e9}, {"mb", 1e6}, {"kb", 1e3}, {"b", 1}, {"", 1}}

func (s size) String() string {
	for _, u := range sizeUnits[:3] {
		if s >= u.bytes && s%u.bytes == 0 {
			return fmt.Sprintf("%d%sB", s/u.bytes, strings.ToUpper(u.name[:1])+"i")
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

func parseSize(text string) (size, error) {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(strings.ToLower(text), u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64/int64(u.bytes) {
			break
		}
		return size(n) * u.bytes, nil
	}
	return 0, errors.New("must be a size such as 500MB or 1GiB")
}

// addOutput adds --output for a text, which is the default, or its JSON.
func addOutput(cmd *cobra.Command, output *choice) {
	*output = choice{"text", []string{"text", "json"}}
	output.add(cmd, "output", "o", "output `FORMAT`: text or json")
}

// newGroup is a command that only has commands of its own.
func newGroup(name, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: name, Short: short}
	group.AddCommand(commands...)
	needCommand(group)
	return group
}

// needCommand makes a group without one of its commands wrong usage.
func needCommand(group *cobra.Command) {
	group.Args = noArgs
	group.RunE = func(cmd *cobra.Command, _ []string) error {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return usage.Error(cmd.CommandPath()+" needs a command", fmt.Sprintf("Run '%s' with %s.", cmd.CommandPath(), session.OneOf(names)))
	}
}

// onData adds --data, the data folder of a server, runs do with it unless check, which may be nil,
// rejects it, and prints the line that do returns; "" = none.
func (a *App) onData(cmd *cobra.Command, check func(data string) error, do func(ctx context.Context, data string, args []string) (string, error)) *cobra.Command {
	var data nonEmpty
	cmd.Flags().Var(&data, "data", "data `DIR` of the server (its --data)")
	_ = cmd.MarkFlagDirname("data")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if data == "" {
			return usage.Error(cmd.CommandPath()+" needs a data folder", "Give it with --data DIR.")
		}
		if check != nil {
			if err := check(string(data)); err != nil {
				return err
			}
		}
		line, err := do(cmd.Context(), string(data), args)
		if err == nil && line != "" {
			_, err = fmt.Fprintln(a.Stdout, line)
		}
		return err
	}
	return cmd
}

// completeChoices offers a flag's words to the shell.
func completeChoices(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// channelsFlag is the value of --channels.
type channelsFlag = parsed[capture.Channels]

// addChannels adds the flag; several is when a channel has more than one speaker.
func addChannels(cmd *cobra.Command, f *channelsFlag, several string) {
	f.parse = capture.ParseChannels
	cmd.Flags().Var(f, "channels", "`CHANNELS` to use: mix (the mean of all), a number (that channel alone), or each (one speaker per channel, "+several+")")
	completeChoices(cmd, "channels", []string{"mix", "each"})
}

// noArgs rejects arguments that are no flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		fix := fmt.Sprintf("Run '%s --help' for the commands.", cmd.CommandPath())
		if !cmd.HasParent() {
			fix = cmp.Or(fileFix(args[0]), fix)
		}
		fix = didYouMean(usage.SimilarCommands(args[0], cmd), fix)
		return usage.Error(fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()), fix)
	}
	return noArgument(cmd, args[0])
}

// didYouMean is a hint before which the names stand that may be meant.
func didYouMean(similar []string, fix string) string {
	if len(similar) == 0 {
		return fix
	}
	return fmt.Sprintf("Did you mean %s? %s", strings.Join(similar, " or "), fix)
}

func noArgument(cmd *cobra.Command, arg string) error {
	fix := seeFlags(cmd)
	if cmd.Name() == "live" {
		fix = cmp.Or(fileFix(arg), fix)
	}
	return usage.Error(fmt.Sprintf("%s takes no argument %q", cmd.CommandPath(), arg), fix)
}

// fileFix is the hint of a file or a recording that is given without the flag or the command that
// takes it; "" = it is neither.
func fileFix(arg string) string {
	switch st, err := os.Stat(arg); {
	case err != nil:
		return ""
	case st.IsDir():
		return "A recording is shown with 'hubbub replay " + arg + "'."
	}
	return "A file is read with 'hubbub --input " + arg + "'."
}

// exactArgs requires one argument for each name.
func exactArgs(names ...string) cobra.PositionalArgs { return neededArgs("", names...) }

// neededArgs is exactArgs with a hint for missing ones. An empty argument, as of an unset variable
// of a shell, is none.
func neededArgs(fix string, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) && !slices.Contains(args, "") {
			return nil
		}
		if len(args) > len(names) {
			return noArgument(cmd, args[len(names)])
		}
		return usage.Error(fmt.Sprintf("%s needs %s", cmd.CommandPath(), strings.Join(names, " and ")), cmp.Or(fix, "Usage: "+cmd.UseLine()))
	}
}

// excludeEachOther is the error of two flags, the second one with its value. A flag on the
// command line excludes a setting, so they are both given there or both settings.
func excludeEachOther(cmd *cobra.Command, first, second, value string) error {
	if cmd.Flags().Changed(first) {
		return usage.Error(fmt.Sprintf("--%s and --%s%s exclude each other", first, second, value), seeFlags(cmd))
	}
	return usage.Error(fmt.Sprintf("the settings %s and %s exclude each other", first, second), "Remove one of them; `hubbub config` shows where they are set.")
}

// seeFlags is the hint of a wrong combination of flags.
func seeFlags(cmd *cobra.Command) string {
	return fmt.Sprintf("Run '%s --help' for the flags.", cmd.CommandPath())
}
