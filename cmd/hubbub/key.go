package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hubbub/localserver"
)

// maxKeyLife is the longest that an API key may live.
const maxKeyLife = 10 * 365 * 24 * time.Hour

func newKey(a *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make API keys for a server",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{"key needs to be told what to do", "Run 'hubbub key create' or 'hubbub key rotate'."}
		},
	}
	cmd.AddCommand(newKeyCreate(a), newKeyRotate(a))
	return cmd
}

func newKeyCreate(a *App) *cobra.Command {
	var account, data string
	plan := choice{localserver.PlanPro, []string{localserver.PlanPro, localserver.PlanNone}}
	expires := span{value: 30 * 24 * time.Hour, min: time.Second, max: maxKeyLife}
	cmd := &cobra.Command{
		Use:   "create --account NAME --data DIR",
		Short: "Print a new API key",
		Long: `Print an API key that a server on the same data folder accepts, also while it
runs, and every other node of its cluster a second or two later. Whoever has the
key is the account, until it expires: pass it on as a secret.`,
		Example: `  hubbub key create --account team-a --data /var/lib/hubbub
  hubbub key create --account trial --plan none --expires 24h --data /var/lib/hubbub`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if account == "" || data == "" {
				return &usageError{"a key needs an account and a data folder", "Give them with --account and --data."}
			}
			key, err := localserver.CreateKey(data, localserver.KeySpec{
				Account: account, Plan: plan.value, Expires: expires.value}, time.Now())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Stdout, key)
			return err
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&account, "account", "", "`NAME` of the account: streams and media of one are not seen by another")
	flags.Var(&plan, "plan", "`PLAN`: pro, or none for a key without subscription")
	flags.Var(&expires, "expires", "`TIME` until the key expires")
	flags.StringVar(&data, "data", "", "`DIR` that the server was given with --data")
	_ = cmd.MarkFlagDirname("data")
	completeChoices(cmd, "plan", plan.allowed)
	return cmd
}

func newKeyRotate(a *App) *cobra.Command {
	var data string
	algorithm := choice{localserver.EdDSA, []string{localserver.EdDSA, localserver.HS256}}
	cmd := &cobra.Command{
		Use:   "rotate --data DIR",
		Short: "Make a new signing key",
		Long: `Make a new signing key in the data folder and print its id. New API keys are
signed with it. Those of older signing keys stay good; removing DIR/keys/ID.pem
makes every API key void that was signed with it, on all nodes of a cluster as
soon as the server on the folder sees it.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if data == "" {
				return &usageError{"a signing key needs a data folder", "Give it with --data."}
			}
			if info, err := os.Stat(data); err != nil || !info.IsDir() {
				return &failure{fmt.Errorf("there is no data folder %s", data), "Give the folder that the server was given with --data."}
			}
			id, err := localserver.MakeSigningKey(data, algorithm.value, time.Now())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Stdout, id)
			return err
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&data, "data", "", "`DIR` that the server was given with --data")
	flags.Var(&algorithm, "algorithm", "`NAME`: EdDSA or HS256")
	_ = cmd.MarkFlagDirname("data")
	completeChoices(cmd, "algorithm", algorithm.allowed)
	return cmd
}
