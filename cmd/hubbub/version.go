package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"hubbub/localserver/engine"
)

// Set by the linker, see the Makefile.
var (
	version = "unknown"
	commit  = "unknown"
)

// versionAndCommit identifies the program in a crash report.
func versionAndCommit() string { return version + " (" + commit + ")" }

// versions is what `hubbub version` and `hubbub --version` print.
func versions() string {
	return fmt.Sprintf("hubbub %s\ncommit %s\n%s %s/%s\nengine %s\nweights %s\n",
		version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		engine.Version(), engine.WeightsVersion())
}

func newVersion(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the program, Go, the engine and its weights",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.Stdout, versions())
			return err
		},
	}
}
