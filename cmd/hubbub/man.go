package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"hubbub/protocol/hint"
)

// newMan is hidden because it is for releases: users get the manual pages and
// completions with a package.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write manual pages and shell completions to a folder",
		Hidden: true,
		Args:   exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return hint.Add(writeManuals(cmd.Root(), args[0]), "Give a folder that can be written.")
		},
	}
}

// writeManuals writes DIR/man/*.1 and DIR/completions/*. The pages carry the month of
// SOURCE_DATE_EPOCH, so that two runs can write the same bytes.
func writeManuals(root *cobra.Command, dir string) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	// The pages are made from Markdown, in which only what is indented by four spaces, such as
	// the tables in help texts, is a block whose lines are not filled.
	walk(root, func(cmd *cobra.Command) { cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n    ") })
	root.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Source: "hubbub", Manual: "hubbub"}
	if err := doc.GenManTree(root, &header, man); err != nil {
		return err
	}
	for name, generate := range map[string]func(string) error{
		"hubbub.bash": func(f string) error { return root.GenBashCompletionFileV2(f, true) },
		"_hubbub":     root.GenZshCompletionFile,
		"hubbub.fish": func(f string) error { return root.GenFishCompletionFile(f, true) },
		"hubbub.ps1":  root.GenPowerShellCompletionFileWithDesc,
	} {
		if err := generate(filepath.Join(completions, name)); err != nil {
			return err
		}
	}
	return nil
}
