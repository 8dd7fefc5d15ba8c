package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hubbub/protocol/conform"
)

// conformSeconds is how much of the demo is sent: three voices, the last of
// them in the middle of a turn.
const conformSeconds = 15

// conformFlags is the command line of `hubbub conform`.
type conformFlags struct {
	liveFlags
	options conform.Options
	list    bool
	report  string
	format  choice
}

func newConform(a *App) *cobra.Command {
	f := &conformFlags{
		liveFlags: liveFlags{pace: choice{value: "realtime"}, engine: defaultEngineFlags()},
		format:    choice{"text", []string{"text", "json"}},
	}
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Play the contract against a service that you build, rule by rule",
		Long: `Play the contract of the service against a server, and tell of each rule whether
it holds, and where it differs what was expected, what was seen, and where it is
written. For those who build such a service themselves.

Verdicts are holds, differs, not offered (what a service need not have) and
skipped, with the reason. Rules from contract.md decide what the specification
(service-interface.md) leaves open: another service may differ there, and
--spec-only leaves them out.

What is sent is bounded: some two hundred small requests, about twenty short
streams, and 15 s of the demo conversation; secrets are in no output. Rules that
take minutes are played with --slow, the hundred requests that the rate limit
takes with --rate, or where the server is on this machine. Without --server the
built-in server is played against. Exits with 1 when something differs.`,
		Example: `  hubbub conform --server https://diarization.example --api-key KEY
  hubbub conform --server http://127.0.0.1:8080 --only events --only stream/end
  hubbub conform --list
  hubbub conform --output json | jq '.rules[] | select(.verdict == "differs")'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := conform.Select(f.options)
			if err != nil {
				return &usageError{"--only: " + err.Error(), "See 'hubbub conform --list' for the names; a group such as events is one, too."}
			}
			if f.list {
				return conform.List(a.Stdout, rules, f.format.value == "json")
			}
			if err := f.complete(cmd); err != nil {
				return err
			}
			return a.conform(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.server, "server", "", "`URL` of the service (HUBBUB_SERVER); default: the built-in server")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` for the service (HUBBUB_API_KEY)")
	flags.StringVar(&f.ca, "ca", "", "PEM `FILE` of the authority to trust for the service")
	flags.BoolVar(&f.insecure, "insecure", false, "do not check the service's certificate")
	flags.StringVar(&f.options.OtherKey, "other-key", "", "`KEY` of another account, for what accounts may not see of each other")
	flags.StringVar(&f.options.UnpaidKey, "unpaid-key", "", "`KEY` of an account without a subscription")
	flags.StringVar(&f.options.ExpiredKey, "expired-key", "", "`KEY` that expired, a minute ago at least: clocks differ")
	flags.StringArrayVar(&f.options.Only, "only", nil, "play this rule or group, `NAME` as in --list, repeatable")
	flags.BoolVar(&f.options.SpecOnly, "spec-only", false, "leave out what the specification leaves open")
	flags.BoolVar(&f.options.Slow, "slow", false, "play the slow rules, too: eleven minutes")
	flags.BoolVar(&f.options.Many, "rate", false, "try the rate limit with a hundred requests on another machine, too")
	flags.BoolVar(&f.list, "list", false, "list the rules and play none")
	flags.VarP(&f.format, "output", "o", "`FORMAT`: text or json")
	flags.StringVar(&f.report, "report", "", "write the table into `FILE` as well, without secrets")
	_ = cmd.MarkFlagFilename("ca", "pem", "crt")
	_ = cmd.MarkFlagFilename("report", "txt")
	completeChoices(cmd, "output", f.format.allowed)
	return cmd
}

// conform plays the rules and reports, also when it was interrupted.
func (a *App) conform(ctx context.Context, f *conformFlags) error {
	speech, err := demoSpeech(ctx, conformSeconds)
	if err != nil {
		return err
	}
	f.counted = true // the limit is one of the rules
	server, err := a.connect(ctx, &f.liveFlags)
	if err != nil {
		return err
	}
	defer server.close()

	o := f.options
	o.Client, o.Key, o.Speech = server.Client, server.key, speech
	o.Many = o.Many || isLoopback(server.BaseURL())
	if isTerminal(a.Stderr) {
		o.Begun = func(done, of int, name string) {
			fmt.Fprintf(a.Stderr, "\rconform: %d of %d, %s ...\x1b[K", done+1, of, name)
		}
		defer fmt.Fprint(a.Stderr, "\r\x1b[K")
	}
	started := time.Now()
	results, err := conform.Run(ctx, o)
	if err != nil {
		return err
	}
	if isTerminal(a.Stderr) {
		fmt.Fprint(a.Stderr, "\r\x1b[K")
	}
	name := server.name
	if f.server != "" {
		name = withoutCredentials(f.server)
	}
	report := conform.NewReport(name, version, started, results)
	write := report.Table
	if f.format.value == "json" {
		write = report.JSON
	}
	if err := write(a.Stdout); err != nil {
		return err
	}
	if f.report != "" {
		if err := writePrivate(f.report, report.Table); err != nil {
			return &failure{fmt.Errorf("the report cannot be written: %w", err), "Give a file that can be written with --report FILE."}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if n := report.Summary[string(conform.Differs)]; n > 0 {
		return &failure{fmt.Errorf("%d of %d rules differ", n, len(report.Rules)),
			"Each has above what was expected, what was seen, and where it is written; --only NAME plays one again."}
	}
	return nil
}

// writePrivate writes a file that only its owner reads.
func writePrivate(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// isLoopback tells whether an address is one of this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}
