package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol/conform"
	"hubbub/protocol/hint"
)

// conformSeconds is how much of the demo is sent: three voices, the last of
// them in the middle of a turn.
const conformSeconds = 15

// conformFlags are the flags of `hubbub conform`.
type conformFlags struct {
	serviceFlags
	options conform.Options
	list    bool
	report  string
	format  choice
}

func newConform(a *App) *cobra.Command {
	f := &conformFlags{}
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Run the contract tests against a service",
		Long: `Run the contract tests against a service that implements the interface of
'hubbub serve'. Each test checks one rule and prints its verdict; where the service
differs, also what was expected, what was observed, and which section of the
documentation states the rule.

The verdicts are holds, differs, not offered (the feature is optional) and skipped
(with the reason). In some rules another service may differ; --spec-only omits
them.

A run sends about three hundred small requests, about twenty short streams, and 15 s
of the demo conversation as a stream and as jobs. Rules that take minutes run only
with --slow. The rate limit test sends a hundred requests; against another machine
it runs only with --rate. Without --server the built-in server is tested. The output
never contains keys or tokens. The exit code is 1 if a rule differs.`,
		Example: `  hubbub conform --server https://diarization.example --api-key KEY
  hubbub conform --server http://127.0.0.1:8080 --only events --only stream/end
  hubbub conform --list
  hubbub conform --output json | jq '.rules[] | select(.verdict == "differs")'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := conform.Select(f.options)
			if err != nil {
				return usage.Error("--only: "+err.Error(), "See 'hubbub conform --list' for the names; a group such as events is one, too.")
			}
			if f.list {
				return conform.List(a.Stdout, rules, f.format.value == "json")
			}
			if err := f.completeFromSettings(cmd); err != nil {
				return err
			}
			return a.conform(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	f.serviceFlags.add(cmd)
	flags.StringVar(&f.options.OtherKey, "other-key", "", "API `KEY` of another account, to test that accounts are isolated from each other")
	flags.StringVar(&f.options.UnpaidKey, "unpaid-key", "", "API `KEY` of an account without a subscription")
	flags.StringVar(&f.options.ExpiredKey, "expired-key", "", "API `KEY` that expired at least a minute ago")
	flags.StringArrayVar(&f.options.Only, "only", nil, "run only the rule or group `NAME`, as in --list; repeatable")
	flags.BoolVar(&f.options.RequiredOnly, "spec-only", false, "omit rules in which another service may differ")
	flags.BoolVar(&f.options.Slow, "slow", false, "also run the slow rules: eleven minutes")
	flags.BoolVar(&f.options.Many, "rate", false, "also test the rate limit of another machine, with a hundred requests")
	flags.BoolVar(&f.list, "list", false, "list the rules and exit")
	addOutput(cmd, &f.format)
	flags.Var((*nonEmpty)(&f.report), "report", "also write the table to `FILE`; it contains no keys or tokens")
	_ = cmd.MarkFlagFilename("report", "txt")
	return cmd
}

// conform runs the rules and prints the report, also after an interrupt.
func (a *App) conform(ctx context.Context, f *conformFlags) error {
	speech, err := capture.DemoSpeech(ctx, conformSeconds)
	if err != nil {
		return err
	}
	server, err := a.connect(ctx, f.serviceFlags, connectOptions{rateLimited: true}) // one of the rules
	if err != nil {
		return err
	}
	defer server.close()

	o := f.options
	o.Client, o.Key, o.Speech = server.Client, server.key, speech
	if u, err := url.Parse(server.BaseURL()); err == nil && isLoopback(u) {
		o.Many = true
	}
	o.Begin = func(done, of int, name string) {
		a.progress(fmt.Sprintf("conform: %d of %d, %s ...", done+1, of, name))
	}
	o.Waiting = func(wait time.Duration) { a.notice("the service limits requests; waiting %s", wait) }
	started := time.Now()
	results, err := conform.Run(ctx, o)
	if err != nil {
		return err
	}
	report := conform.NewReport(server.name, version, started, results)
	table := func(w io.Writer) error { return report.Table(w, tableStyle(w)) }
	if err := cmp.Or(a.printReport(f.format, table, report.JSON), writeReport(f.report, table), ctx.Err()); err != nil {
		return err
	}
	if n := report.Summary[conform.Differs]; n > 0 {
		return hint.Add(fmt.Errorf("%d of %d rules differ", n, len(report.Rules)),
			"The table says what was expected, what was observed, and which section states the rule; --only NAME repeats one.")
	}
	return nil
}
