package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hubbub/localserver/store/datafolder"
	"hubbub/protocol/hint"
)

func newStore(a *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Back up, restore, check or empty the data folder of a server",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return &usageError{"hubbub store needs a command", "Run 'hubbub store backup', 'restore', 'check' or 'purge'."}
		},
	}
	cmd.AddCommand(newStoreBackup(a), newStoreRestore(a), newStoreCheck(a), newStorePurge(a))
	return cmd
}

var errNoData = &usageError{"a store needs a data folder", "Give it with --data."}

func newStoreCheck(a *App) *cobra.Command {
	var data string
	var output choice
	cmd := &cobra.Command{
		Use:   "check --data DIR",
		Short: "Verify the checksums of everything that is stored",
		Long: `Read everything that a stopped server has stored in its data folder, verify the
checksum of each record, and print one line for each stream of the store. Nothing
is changed. The exit code is 1 if something is damaged.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if data == "" {
				return errNoData
			}
			reports, err := datafolder.Check(data)
			if err != nil {
				return err
			}
			if err := printReports(a, reports, output.value); err != nil {
				return err
			}
			for _, r := range reports {
				if r.Damaged > 0 {
					return hint.Add(errors.New("some of the store is damaged"),
						"The server starts with what is intact. Damaged media are deleted by 'hubbub store purge'.")
				}
			}
			return nil
		},
	}
	addData(cmd, &data)
	addOutput(cmd, &output)
	return cmd
}

func printReports(a *App, reports []datafolder.Report, format string) error {
	if format == "json" {
		return printJSONList(a.Stdout, reports)
	}
	w := a.table("STREAM\tRECORDS\tBYTES\tDAMAGED BYTES\tDAMAGED RANGES")
	for _, r := range reports {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", r.Stream, r.Records, r.Bytes, r.Damaged, r.Ranges)
	}
	return w.Flush()
}

func newStorePurge(a *App) *cobra.Command {
	var data string
	var all bool
	cmd := &cobra.Command{
		Use:   "purge --data DIR",
		Short: "Delete the stored media",
		Long: `Delete all media objects, and with them the results of jobs, from the data folder
of a stopped server and print how many bytes that freed. It works on a full disk.
With --all also delete the jobs, the streams, their events and their voiceprints,
and make signed media addresses invalid. API keys, signing keys and the
certificate remain.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if data == "" {
				return errNoData
			}
			freed, err := datafolder.Purge(data, all)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Stdout, "%d bytes freed\n", freed)
			return err
		},
	}
	addData(cmd, &data)
	cmd.Flags().BoolVar(&all, "all", false, "also delete the jobs, the streams, their events and their voiceprints")
	return cmd
}
