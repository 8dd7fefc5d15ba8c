package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hubbub/cmd/hubbub/internal/traces"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/localserver"
	"hubbub/localserver/certificate"
	"hubbub/localserver/faults"
	"hubbub/protocol/words"
)

const (
	// shutdownTime bounds a graceful shutdown, in which open streams are finished.
	shutdownTime = 10 * time.Second
	// maxDrain bounds the time that streams have to end by themselves before it.
	// No stream lasts longer.
	maxDrain = 24 * time.Hour
)

// serveFlags are the flags of `hubbub serve`. The options have those that need no
// conversion.
type serveFlags struct {
	options                             localserver.Options
	tls                                 parsed[certificate.Config]
	maxStreams, maxAccountStreams, jobs count
	maxMedia, accountStorage            parsed[size]
	drain                               durationFlag
	faults                              []string
	engine                              engineFlags
	words                               wordsFlags
	logFormat, logLevel                 choice
}

func newServe(a *App) *cobra.Command {
	f := &serveFlags{
		options:    localserver.Options{Version: version},
		tls:        parsed[certificate.Config]{value: certificate.Config{Mode: certificate.SelfSigned}, parse: certificate.Parse},
		maxStreams: newCount(0, 1<<20), maxAccountStreams: newCount(0, localserver.MaxAccountStreams), jobs: newCount(0, 1<<10),
		maxMedia: parsed[size]{value: localserver.DefaultMaxMedia, parse: parseSize}, accountStorage: parsed[size]{value: localserver.DefaultAccountStorage, parse: parseSize},
		drain:     newDuration(0, 0, maxDrain),
		logFormat: choice{"text", []string{"text", "json"}}, logLevel: choice{"info", []string{"debug", "info", "warn", "error"}},
	}
	o := &f.options
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the built-in server on its own",
		Long: `Run the diarization service for other programs. When the server accepts requests
it prints one line on standard output, 'ready URL'. On SIGTERM it accepts no new
streams, finishes the open ones and exits. With --drain the open streams first
have time to end by themselves; a second SIGTERM ends this time.

--fault injects a fault, to test clients of the service. Its form is
` + faults.Form + `:

` + faults.Help() + `
@TIME counts from the opening of the stream. times=N limits the fault to the first
N requests or streams. on=OPERATION is one of test, live (creating a stream, the
default), status, watch, media-list, media-delete, media-input, media-output,
transfer, handshake, job-create, job-status, job-cancel, job-list or all.`,
		Example: `  hubbub serve --api-key secret
  hubbub serve --listen 0.0.0.0:8580 --data /var/lib/hubbub
  hubbub serve --nats nats://n1:4222,nats://n2:4222 --public-url https://a.example --tls a.pem,a.key
  hubbub key create --account team-a --data /var/lib/hubbub
  hubbub serve --api-key secret --fault close=1011@10s,times=1 --fault event-lag=3s`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, endLog := startLog(a.Stderr, f.logHandler)
			defer func() {
				if !endLog() { // nor would anybody read the error
					a.Stderr = io.Discard
				}
			}()
			o, err := f.serverOptions(log)
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), o, f.drain.value)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "listen", "127.0.0.1:8580", "`HOST:PORT` to listen on; port 0 picks a free port")
	flags.Var(&f.tls, "tls", "TLS `MODE`: self-signed, off, or CERT,KEY: two PEM files, reloaded when they change")
	flags.StringArrayVar(&o.APIKeys, "api-key", nil, "API `KEY` to accept, for the account default; repeatable (HUBBUB_API_KEY)")
	flags.Var((*nonEmpty)(&o.DataDir), "data", "store streams in `DIR` (default: in memory)")
	flags.Var((*nonEmpty)(&o.NATS), "nats", "`URL` of a NATS cluster with JetStream that stores the streams of several nodes")
	flags.StringVar(&o.PublicURL, "public-url", "", "`URL` at which clients reach this server, if it differs from the listening address")
	flags.Var(&f.maxStreams, "max-streams", "at most `N` concurrent streams on this node (default: 30 for each core)")
	flags.Var(&f.maxAccountStreams, "max-account-streams", "at most `N` concurrent streams of one account on all nodes (default: as --max-streams)")
	flags.Var(&f.maxMedia, "max-media", "largest `SIZE` of a media object")
	flags.Var(&f.accountStorage, "account-storage", "`SIZE` of all media of one account")
	flags.Var(&f.jobs, "jobs", "run at most `N` jobs on whole recordings at once on this node (default: one for each core)")
	flags.StringSliceVar(&o.FetchFrom, "fetch-from", nil, "`HOST`s, separated by commas, whose audio jobs may fetch: names, *.NAME, addresses, networks")
	flags.StringSliceVar(&o.WebhookTo, "webhook-to", nil, "`HOST`s that webhooks may also call over plain HTTP and at private addresses")
	flags.BoolVar(&o.KeepAudio, "keep-audio", false, "store the audio of each stream as media://live/ID/audio.wav")
	flags.IntVar(&o.RatePerMinute, "rate", localserver.DefaultRatePerMinute, "at most `N` requests per minute for each account and operation on all nodes; -1 for no limit")
	flags.Var(&f.drain, "drain", "after SIGTERM, wait for at most `TIME` until the open streams have ended by themselves")
	flags.StringVar(&o.MetricsAddr, "metrics-listen", "", "serve /metrics at `HOST:PORT` over plain HTTP, and no longer at the address of the service")
	f.words.add(flags, "send what is said to clients that ask for it, from your `RECOGNISER`: "+recogniserHelp)
	f.logFormat.add(cmd, "log-format", "", "log `FORMAT`: text or json")
	f.logLevel.add(cmd, "log-level", "", "lowest `LEVEL` that is logged: debug, info, warn or error")
	flags.StringArrayVar(&f.faults, "fault", nil, "inject `FAULT`, from the list above; repeatable")
	f.engine.add(flags)
	_ = cmd.MarkFlagDirname("data")
	completeChoices(cmd, "tls", []string{string(certificate.SelfSigned), string(certificate.Off)})
	return cmd
}

func (f *serveFlags) serverOptions(logger *slog.Logger) (o localserver.Options, err error) {
	o = f.options
	if key := os.Getenv("HUBBUB_API_KEY"); len(o.APIKeys) == 0 && key != "" {
		o.APIKeys = []string{key}
	}
	if o.RatePerMinute == 0 { // of the Options, the default
		return o, usage.Error("--rate: 0 requests a minute is out of range",
			fmt.Sprintf("Give 1 to %d, or -1 for no limit.", localserver.MaxRatePerMinute))
	}
	for _, spec := range f.faults {
		fault, err := faults.Parse(spec)
		if err != nil {
			return o, usage.Of(fmt.Errorf("--fault %s: %w", spec, err))
		}
		o.Faults = append(o.Faults, fault)
	}
	o.MaxMedia, o.MaxStreams, o.MaxAccountStreams = int64(f.maxMedia.value), f.maxStreams.value, f.maxAccountStreams.value
	o.AccountStorage, o.Jobs = int64(f.accountStorage.value), f.jobs.value
	o.TLS = f.tls.value
	o.Engine = f.engine.config()
	o.Logger = logger
	if err := o.Validate(); err != nil {
		return o, usage.Of(err)
	}
	o.Words, err = f.words.recogniser(words.RecordingTimeout)
	return o, err
}

// logHandler writes one line for each record, of the chosen level or above.
func (f *serveFlags) logHandler(w io.Writer) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.logLevel.value)) // every choice is the name of a level
	o := &slog.HandlerOptions{Level: level}
	if f.logFormat.value == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}

// serve runs until it is interrupted, which is the normal end of a server. Then
// the open streams have the time drain to end by themselves; a second interrupt
// ends that time.
func (a *App) serve(ctx context.Context, o localserver.Options, drain time.Duration) error {
	provider, stopTraces, err := traces.Start(context.WithoutCancel(ctx), version, o.Logger)
	if err != nil {
		return err
	}
	defer stopTraces()
	o.Traces = provider
	server, err := localserver.Start(context.WithoutCancel(ctx), o)
	if err != nil {
		return err
	}
	draining, endDrain := context.WithCancel(context.WithoutCancel(ctx))
	defer endDrain()
	if drain > 0 {
		a.onSecondInterrupt(func() bool {
			active := draining.Err() == nil
			endDrain()
			return active
		})
	}
	if _, err := fmt.Fprintf(a.Stdout, "ready %s\n", server.URL()); err != nil {
		return err
	}
	failed := awaitEnd(server, nil)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	a.interrupted.Store(false) // for a server it is the normal end
	if drain > 0 {
		draining, cancel := context.WithTimeout(draining, drain)
		server.Drain(draining)
		cancel()
		endDrain()
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	return cmp.Or(server.Shutdown(stop), <-failed)
}
