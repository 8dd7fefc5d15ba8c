package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hubbub/capture"
)

func newDevices(a *App) *cobra.Command {
	output := choice{"text", []string{"text", "json"}}
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the audio capture devices",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			devices, err := capture.Devices(cmd.Context())
			if err != nil {
				return err
			}
			if output.value == "json" {
				return printJSONList(a.Stdout, devices)
			}
			if len(devices) == 0 {
				a.notice("no capture device on this machine\nPlug one in, or play a file with --input FILE.")
				return nil
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NUMBER\tNAME\tHOST API\tCHANNELS\tRATE\tDEFAULT")
			for _, d := range devices {
				isDefault := ""
				if d.Default {
					isDefault = "default"
				}
				fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%.0f\t%s\n", d.Number, d.Name, d.HostAPI, d.Channels, d.Rate, isDefault)
			}
			return w.Flush()
		},
	}
	cmd.Flags().Var(&output, "output", "output `FORMAT`: text or json")
	return cmd
}
