package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/localserver/apikeys"
	"hubbub/protocol"
	"hubbub/protocol/hint"
)

// maxKeyLifetime bounds the lifetime of an API key.
const maxKeyLifetime = 10 * 365 * 24 * time.Hour

func newKey(a *App) *cobra.Command {
	return newGroup("key", "Create, list and revoke the API keys of a server",
		newKeyCreate(a), newKeyList(a), newKeyRevoke(a), newKeyRotate(a), newKeyWebhook(a))
}

func newKeyCreate(a *App) *cobra.Command {
	var account string
	plan := choice{apikeys.PlanPro, []string{apikeys.PlanPro, apikeys.PlanNone}}
	expires := newDuration(30*24*time.Hour, time.Second, maxKeyLifetime)
	cmd := &cobra.Command{
		Use:   "create --account NAME --data DIR",
		Short: "Print a new API key",
		Long: `Print a new API key. A server with the same data folder accepts it at once, and
the other nodes of its cluster within about two seconds. The key grants access to
the account until it expires. Treat it as a secret.`,
		Example: `  hubbub key create --account team-a --data /var/lib/hubbub
  hubbub key create --account trial --plan none --expires 24h --data /var/lib/hubbub`,
		Args: noArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&account, "account", "", "`NAME` of the account; accounts do not see the streams and media of each other")
	plan.add(cmd, "plan", "", "`PLAN`: pro, or none for a key without a subscription")
	flags.Var(&expires, "expires", "lifetime of the key, a `TIME` such as 24h")
	check := func(string) error { return checkAccount(account) }
	return a.onData(cmd, check, func(_ context.Context, data string, _ []string) (string, error) {
		return apikeys.Create(data, apikeys.Spec{Account: account, Plan: plan.value, Expires: expires.value}, time.Now())
	})
}

func checkAccount(account string) error {
	if account == "" {
		return usage.Error("the name of an account is missing", "Give it with --account NAME.")
	}
	if err := apikeys.CheckAccount(account); err != nil {
		return usage.Of(err)
	}
	return nil
}

func dataFolder(data string) error {
	if info, err := os.Stat(data); err != nil || !info.IsDir() {
		return hint.Add(fmt.Errorf("there is no data folder %s", data), "Give the folder that the server was given with --data.")
	}
	return nil
}

func newKeyList(a *App) *cobra.Command {
	var output choice
	cmd := &cobra.Command{
		Use:   "list --data DIR",
		Short: "List the API keys of a data folder",
		Long: `List the API keys that were created or revoked in a data folder: their IDs and
what they are valid for, not the keys themselves. A key is listed until 30 days
after it has expired, and always if it is not known when it expires.`,
		Args: noArgs,
	}
	addOutput(cmd, &output)
	return a.onData(cmd, dataFolder, func(_ context.Context, data string, _ []string) (string, error) {
		records, unread := apikeys.List(data, time.Now())
		if err := a.printKeys(records, output.value); err != nil {
			return "", err
		}
		if unread != nil {
			first, _, _ := strings.Cut(unread.Error(), "\n")
			return "", hint.Add(errors.New(first), "Check the files in the folder apikeys of the data folder.")
		}
		return "", nil
	})
}

func (a *App) printKeys(records []apikeys.Record, format string) error {
	at := func(t *time.Time) string {
		if t == nil {
			return "-"
		}
		return t.UTC().Format(time.RFC3339)
	}
	return printList(a.Stdout, format, "ID\tSTATE\tACCOUNT\tPLAN\tCREATED\tEXPIRES\tSIGNING KEY", records, func(r apikeys.Record) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", cmp.Or(protocol.Clean(r.ID, 256), "-"), r.State(time.Now()),
			cmp.Or(r.Account, "-"), cmp.Or(r.Plan, "-"), at(r.Created), at(r.Expires), cmp.Or(r.SigningKey, "-"))
	})
}

func newKeyRevoke(a *App) *cobra.Command {
	return a.onData(&cobra.Command{
		Use:   "revoke ID --data DIR",
		Short: "Revoke one API key",
		Long: `Revoke one API key, given by its ID ('hubbub key list', or the claim jti of a key
that was signed elsewhere) or as a whole. A server with the same data folder, and
all nodes of its cluster, refuse the key within about two seconds and close the
streams and watchers that it opened. It cannot be undone.`,
		Example: `  hubbub key revoke 5ZFQ2N7E4TJ3XWL6KHYV2MDACB --data /var/lib/hubbub`,
		Args:    neededArgs("'hubbub key list' lists them.", "the ID of an API key"),
	}, dataFolder, func(_ context.Context, data string, args []string) (string, error) {
		record, known, err := apikeys.Revoke(data, args[0], time.Now())
		if err == nil && !known {
			a.notice("no API key with this ID was created in %s; one that was signed elsewhere is revoked all the same, a static key is not", data)
		}
		return protocol.Clean(record.ID, 256), err
	})
}

func newKeyRotate(a *App) *cobra.Command {
	algorithm := choice{apikeys.EdDSA, []string{apikeys.EdDSA, apikeys.HS256}}
	cmd := a.onData(&cobra.Command{
		Use:   "rotate --data DIR",
		Short: "Create a new signing key",
		Long: `Create a new signing key in the data folder and print its ID. New API keys are
signed with it. API keys of older signing keys remain valid. To revoke all API
keys of one signing key, delete DIR/keys/ID.pem: the server with this data folder
notices it within about two seconds and informs the other nodes of its cluster.`,
		Args: noArgs,
	}, dataFolder, func(_ context.Context, data string, _ []string) (string, error) {
		return apikeys.CreateSigningKey(data, algorithm.value, time.Now())
	})
	algorithm.add(cmd, "algorithm", "", "signing algorithm `NAME`: EdDSA or HS256")
	return cmd
}

func newKeyWebhook(a *App) *cobra.Command {
	var account string
	cmd := &cobra.Command{
		Use:   "webhook --account NAME --data DIR",
		Short: "Print the secret that signs the webhooks of an account",
		Long: `Print the secret with which a server signs the webhooks of an account's jobs. Who
receives them verifies the signature with it. It stays the same until the file
webhook.secret of the data folder is deleted.`,
		Args: noArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&account, "account", "", "`NAME` of the account")
	check := func(data string) error { return cmp.Or(checkAccount(account), dataFolder(data)) }
	return a.onData(cmd, check, func(_ context.Context, data string, _ []string) (string, error) {
		root, err := apikeys.WebhookRoot(data)
		return apikeys.WebhookSecret(root, account), err
	})
}
