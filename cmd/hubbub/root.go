package main

import (
	"github.com/spf13/cobra"
)

// newRoot builds the tree of commands. Plain `hubbub` is `hubbub live`.
func newRoot(a *App) *cobra.Command {
	root := newLive(a)
	root.Use = "hubbub"
	root.Short = "See who is talking, live, in your terminal"
	root.Long = `hubbub shows who is talking, live, in your terminal.

It listens to the microphone (or a file), streams the audio to a diarization
service or to the one built in, and draws every speaker's turns while people
talk. Plain 'hubbub' is 'hubbub live'.`
	// cobra itself tells unknown commands apart and knows what was meant.
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
		newDevices(a),
		newWatch(a),
		newReplay(a),
		newExport(a),
		newCheck(a),
		newConform(a),
		newLoad(a),
		newConfig(a),
		newScore(a),
		newVersion(a),
	)
	return root
}
