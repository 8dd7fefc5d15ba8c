package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hubbub/capture"
	"hubbub/protocol"
)

// checkFlags is the command line of `hubbub check`.
type checkFlags struct {
	liveFlags
	seconds count
	limit   span
	report  string
	format  choice
}

func newCheck(a *App) *cobra.Command {
	f := &checkFlags{
		liveFlags: liveFlags{pace: choice{value: "realtime"}, engine: defaultEngineFlags()},
		seconds:   count{10, 1, 60},
		limit:     span{value: 10 * time.Second, min: 100 * time.Millisecond, max: time.Minute},
		format:    choice{"text", []string{"text", "json"}},
	}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find out why a service cannot be reached, stage by stage",
		Long: `Go the whole way of a stream, one stage after the other, and tell of each how
long it took, what was seen, and where it failed why, and what to do:

  dns        the name is looked up           websocket  the stream is opened
  tcp        the port answers                audio      speech is accepted, in real time
  tls        the certificate is good         event      a speaker was heard
  key        the API key is accepted         lag        how late events come
  create     a stream is created             close      the stream ends in order
                                             status     the service knows how it went

What is sent is the built-in demo conversation, never the microphone. Stages
after one that failed are skipped. Without --server the built-in server is
checked. Secrets are in no output. Exits with 1 when a stage failed.`,
		Example: `  hubbub check
  hubbub check --server https://diarization.example --report for-the-ticket.txt
  hubbub check --output json | jq '.stages[] | select(.state == "failed")'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.liveFlags.complete(cmd); err != nil {
				return err
			}
			return a.check(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.server, "server", "", "`URL` of a remote service (HUBBUB_SERVER); default: the built-in server")
	flags.StringVar(&f.apiKey, "api-key", "", "`KEY` for the remote service (HUBBUB_API_KEY)")
	flags.StringVar(&f.ca, "ca", "", "PEM `FILE` of the authority to trust for the remote service")
	flags.BoolVar(&f.insecure, "insecure", false, "do not check the remote service's certificate")
	flags.Var(&f.seconds, "seconds", "`N` seconds of speech to send, 1 to 60")
	flags.Var(&f.limit, "timeout", "longest `TIME` that one step on the network may take")
	flags.VarP(&f.format, "output", "o", "`FORMAT`: text or json")
	flags.StringVar(&f.report, "report", "", "write `FILE` to attach to a ticket, without secrets")
	_ = cmd.MarkFlagFilename("ca", "pem", "crt")
	_ = cmd.MarkFlagFilename("report", "txt")
	completeChoices(cmd, "output", f.format.allowed)
	return cmd
}

// check runs all stages and reports, also when it was interrupted.
func (a *App) check(ctx context.Context, f *checkFlags) error {
	speech, err := demoSpeech(ctx, f.seconds.value)
	if err != nil {
		return err
	}
	f.timeout = f.limit.value
	server, err := a.connect(ctx, &f.liveFlags)
	if err != nil {
		return err
	}
	defer server.close()

	c := newChecker(server, f.limit.value, f.apiKey, speech)
	if isTerminal(a.Stderr) {
		c.begun = func(title string) { fmt.Fprintf(a.Stderr, "\rcheck: %s ...\x1b[K", title) }
	}
	started := time.Now()
	c.run(ctx)
	if isTerminal(a.Stderr) {
		fmt.Fprint(a.Stderr, "\r\x1b[K")
	}
	report := c.report(started)
	if f.server != "" {
		report.Server = c.secrets.hide(withoutCredentials(f.server))
	}
	if err := report.print(a.Stdout, f.format.value); err != nil {
		return err
	}
	if f.report != "" {
		if err := writeTicket(f.report, report); err != nil {
			return &failure{fmt.Errorf("the report cannot be written: %w", err), "Give a file that can be written with --report FILE."}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range report.Stages {
		if s.State == stateFailed {
			if isTerminal(a.Stdout) && isTerminal(a.Stderr) && f.format.value == "text" { // both stand right above
				return &failure{fmt.Errorf("the check failed at %q", s.Title), "Cause and next step are above; --report FILE writes them down for a ticket."}
			}
			return &failure{fmt.Errorf("the check failed at %q: %s", s.Title, s.Cause), s.Next}
		}
	}
	return nil
}

func writeTicket(path string, r checkReport) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(r.ticket(file), file.Close())
}

// demoSpeech is the beginning of the demo, whole chunks of it.
func demoSpeech(ctx context.Context, seconds int) ([]float32, error) {
	source, err := capture.OpenDemo(ctx)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	speech := make([]float32, seconds*protocol.SampleRate)
	for n := 0; n < len(speech); {
		k, err := source.Read(ctx, speech[n:])
		n += k
		if errors.Is(err, io.EOF) {
			return speech[:n/protocol.ChunkSamples*protocol.ChunkSamples], nil
		}
		if err != nil {
			return nil, err
		}
	}
	return speech, nil
}
