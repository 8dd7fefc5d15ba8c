package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol/hint"
)

// Once for all trees: tests make several at the same time.
func init() { cobra.AddTemplateFunc("versions", versions) } // which loads the weights, when it is called

// newRoot is the tree of commands. `hubbub` alone is `hubbub live`.
func newRoot(a *App) *cobra.Command {
	root := newLive(a)
	root.Use = "hubbub"
	root.Short = "See who is talking, live, in your terminal"
	root.Long = `hubbub shows who is talking, live, in your terminal.

It reads audio from the microphone or a file, streams it to a speaker
diarization service, and displays the turns of each speaker while people talk.
The default service is built in and runs on this machine. 'hubbub' alone is
'hubbub live'.`
	// cobra itself detects unknown commands, but not an empty one, as of an unset variable of
	// a shell.
	root.Args, root.PreRunE = nil, noArgs
	root.Version = version
	root.SetVersionTemplate("{{versions}}")
	root.InitDefaultVersionFlag()
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.DisableSuggestions = true // noArgs has them
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".LocalFlags.FlagUsages",
		fmt.Sprintf(".LocalFlags.FlagUsagesWrapped %d", tableStyle(a.Stdout).Width)))
	root.AddCommand(
		newLive(a),
		newServe(a),
		newKey(a),
		newStore(a),
		newVoices(a),
		newDevices(a),
		newWatch(a),
		newReplay(a),
		newExport(a),
		newDiarize(a),
		newJobs(a),
		newCheck(a),
		newConform(a),
		newLoad(a),
		newConfig(a),
		newScore(a),
		newVersion(a),
		newMan(),
	)
	// Help lists the flags of each command in the order of the code, which groups them.
	walk(root, func(cmd *cobra.Command) { cmd.Flags().SortFlags = false })
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Run, help.RunE = nil, helpOn
	}
	return root
}

// walk calls do with a command and all below it.
func walk(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		walk(c, do)
	}
}

// helpOn prints the help of the command that args name. cobra's own function
// prints an unknown name and the usage, and succeeds.
func helpOn(cmd *cobra.Command, args []string) error {
	target, rest, err := cmd.Root().Find(args)
	if err != nil {
		return err
	}
	if err := noArgs(target, rest); err != nil {
		return err
	}
	target.InitDefaultHelpFlag()
	return target.Help()
}

// addCompletion adds cobra's command, which prints its help for an unknown shell and
// succeeds. Here that is an error, and an argument of a shell is no command.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		walk(completion, func(cmd *cobra.Command) { cmd.Args = noArgs })
		needCommand(completion)
	}
}

// plainDescriptions removes the quotes of the values from the descriptions of flags, which the
// help reads, and which cobra passes to the shell as they are.
func plainDescriptions(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
}

// flagError makes wrong usage of an error of pflag, with the flag of the nearest
// name, or the command of this name.
func flagError(cmd *cobra.Command, err error) error {
	msg := usage.PlainReason(err.Error())
	fix := cmp.Or(hint.Of(err), seeFlags(cmd))
	if name, ok := strings.CutPrefix(msg, "unknown flag: --"); ok {
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
		if c, _, err := cmd.Find([]string{name}); err == nil && c != cmd { // as in hubbub --devices
			fix = fmt.Sprintf("Did you mean '%s'? %s", c.CommandPath(), fix)
		} else {
			fix = didYouMean(usage.Similar("--"+name, flags), fix)
		}
	}
	return usage.Error(msg, fix)
}

// unknownCommand makes wrong usage of cobra's error of an unknown command; nil of another one.
func unknownCommand(root *cobra.Command, err error) error {
	quoted, found := strings.CutPrefix(err.Error(), "unknown command ")
	if !found {
		return nil
	}
	quoted, _ = strconv.QuotedPrefix(quoted)
	arg, _ := strconv.Unquote(quoted)
	return noArgs(root, []string{arg})
}
