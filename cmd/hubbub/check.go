package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/session"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol/check"
	"hubbub/protocol/hint"
)

// checkFlags are the flags of `hubbub check`.
type checkFlags struct {
	serviceFlags
	seconds count
	limit   durationFlag
	report  string
	format  choice
	strict  bool
	ready   bool
}

// noKey takes the place of an API key that is not sent.
const noKey = "none"

func newCheck(a *App) *cobra.Command {
	f := &checkFlags{
		seconds: newCount(10, 60),
		limit:   newDuration(10*time.Second, 100*time.Millisecond, time.Minute),
	}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Diagnose the connection to a service, stage by stage",
		Long: `Run a complete stream against a service, stage by stage. For each stage print its
duration and what was observed; if it failed, also the cause and what to do:

  dns        the host name resolves          websocket  the stream opens
  tcp        the port accepts connections    audio      audio is accepted in real time
  tls        the certificate is valid        event      a first event arrives
  key        the API key is accepted         lag        the lag of the events
  create     a stream is created             close      the stream closes normally
                                             status     the service reports it as done

The audio is the built-in demo conversation, never the microphone. The stages
after a failed one are skipped. Without --server the built-in server is checked.
The output never contains keys or tokens. The exit code is 1 if a stage failed,
with --strict also if a stage has a notice.`,
		Example: `  hubbub check
  hubbub check --server https://diarization.example --report for-the-ticket.txt
  hubbub check --output json | jq '.stages[] | select(.state == "failed")'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.keyless = true // the stages before that of the key need none
			if f.ready {
				f.apiKey = cmp.Or(f.apiKey, noKey)
			}
			if err := f.completeFromSettings(cmd); err != nil {
				return err
			}
			if f.ready {
				return a.ready(cmd.Context(), f)
			}
			return a.check(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	f.serviceFlags.add(cmd)
	flags.Var(&f.seconds, "seconds", "seconds of audio to send, `N` from 1 to 60")
	flags.Var(&f.limit, "timeout", "timeout of each network operation, a `TIME` such as 10s")
	addOutput(cmd, &f.format)
	flags.Var((*nonEmpty)(&f.report), "report", "also write a report to `FILE`, for a support ticket; it contains no keys or tokens")
	flags.BoolVar(&f.strict, "strict", false, "exit with 1 also if a stage has a notice")
	flags.BoolVar(&f.ready, "ready", false, "only ask a service whether it is ready, without a key or a stream: for health checks of containers")
	_ = cmd.MarkFlagFilename("report", "txt")
	return cmd
}

// check runs all stages and prints the report, also after an interrupt.
func (a *App) check(ctx context.Context, f *checkFlags) error {
	speech, err := capture.DemoSpeech(ctx, f.seconds.value)
	if err != nil {
		return err
	}
	service := f.serviceFlags
	if f.noKey != nil {
		service.apiKey = noKey
	}
	server, err := a.connect(ctx, service, connectOptions{timeout: f.limit.value})
	if err != nil {
		return err
	}
	defer server.close()

	report := check.Run(ctx, check.Options{Client: server.Client, Server: server.name, Key: f.apiKey, NoKey: f.noKey,
		Limit: f.limit.value, Speech: speech, Version: version, Begin: func(title string) { a.progress("check: " + title + " ...") }})
	table := func(w io.Writer) error { return report.Table(w, tableStyle(w)) }
	if err := cmp.Or(a.printReport(f.format, table, report.JSON), writeReport(f.report, report.Ticket), ctx.Err()); err != nil {
		return err
	}
	what, s := "the check failed", report.First(check.Failed)
	if s == nil && f.strict {
		what, s = "the check has a notice", report.First(check.Notice)
	}
	switch {
	case s == nil:
		return nil
	case session.IsTerminal(a.Stdout) && session.IsTerminal(a.Stderr) && f.format.value == "text": // the table is right above
		return hint.Add(fmt.Errorf("%s at %q", what, s.Title), "Cause and next step are above; --report FILE writes them to a file for a ticket.")
	}
	return hint.Add(fmt.Errorf("%s at %q: %s", what, s.Title, s.Cause), s.Next)
}

// ready reports by its error whether a service accepts streams.
func (a *App) ready(ctx context.Context, f *checkFlags) error {
	if f.server == "" {
		return usage.Error("--ready asks a running service", "Give its address with --server URL.")
	}
	server, err := a.connect(ctx, f.serviceFlags, connectOptions{timeout: f.limit.value})
	if err != nil {
		return err
	}
	defer server.close()
	return server.Ready(ctx)
}

// tableStyle is the style of a table on the terminal behind w, or of one that is
// no terminal.
func tableStyle(w io.Writer) check.Style {
	f, ok := w.(*os.File)
	if !ok || !session.IsTerminal(f) {
		return check.Style{}
	}
	s := check.Style{Colours: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		s.Width = width
	}
	return s
}
