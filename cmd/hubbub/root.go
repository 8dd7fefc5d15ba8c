package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

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
	// cobra itself detects unknown commands and suggests others.
	root.Args = nil
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SuggestionsMinimumDistance = 1
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagError)
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
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Run, help.RunE = nil, helpOn
	}
	return root
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
// succeeds. Here that is an error.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	completion.Args = nil
	completion.RunE = func(_ *cobra.Command, args []string) error {
		msg := "hubbub completion needs a shell"
		if len(args) > 0 {
			msg = fmt.Sprintf("hubbub completion knows no shell %q", args[0])
		}
		return &usageError{msg, "Run 'hubbub completion bash', 'zsh', 'fish' or 'powershell'."}
	}
}
