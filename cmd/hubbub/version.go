package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"hubbub/localserver/engine"
)

// Set by the linker, see the Makefile; otherwise what go build knows of the repository.
var (
	version = "unknown"
	commit  = "unknown"
)

func init() {
	if info, ok := debug.ReadBuildInfo(); ok && commit == "unknown" {
		version, commit = builtFrom(info)
	}
}

func builtFrom(info *debug.BuildInfo) (version, commit string) {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.Main.Version, s.Value[:min(12, len(s.Value))]
		}
	}
	return "unknown", "unknown"
}

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
