package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hubbub/localserver"
	"hubbub/localserver/rehearsal"
)

// shutdownTime bounds a graceful stop: open streams are finished in it.
const shutdownTime = 10 * time.Second

func newServe(a *App) *cobra.Command {
	o := localserver.Options{Version: version}
	engine := defaultEngineFlags()
	tls := tlsFlag{localserver.TLSConfig{Mode: localserver.SelfSigned}}
	maxStreams, maxAccountStreams := count{0, 1, 1 << 20}, count{0, 1, localserver.MaxAccountStreams}
	var faults []string
	maxMedia := size{localserver.DefaultMaxMedia}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the built-in server on its own",
		Long: `Run the diarization service for other programs. When it is ready it prints one
line on standard output, 'ready URL'. SIGTERM ends it: no new streams, open ones
are finished.

--fault makes the server misbehave on purpose, so that clients of the service can
be tried against it. Written ` + rehearsal.Form + `:

` + rehearsal.Help() + `
@TIME counts from the opening of the stream, times=N means the first N requests or
streams, on= is one of test, live (creating one; the usual), status, watch,
media-input, media-output, transfer, handshake, all.`,
		Example: `  hubbub serve --api-key secret
  hubbub serve --listen 0.0.0.0:8580 --data /var/lib/hubbub
  hubbub serve --nats nats://n1:4222,nats://n2:4222 --public-url https://a.example --tls a.pem,a.key
  hubbub key create --account team-a --data /var/lib/hubbub
  hubbub serve --api-key secret --fault close=1011@10s,times=1 --fault event-lag=3s`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if key := os.Getenv("HUBBUB_API_KEY"); len(o.APIKeys) == 0 && key != "" {
				o.APIKeys = []string{key}
			}
			if len(o.APIKeys) == 0 && o.DataDir == "" && o.NATS == "" {
				return &usageError{"a server needs an API key",
					"Give one with --api-key or in HUBBUB_API_KEY, or --data DIR and a key of 'hubbub key create'."}
			}
			for _, spec := range faults {
				f, err := rehearsal.Parse(spec)
				if err != nil {
					return &usageError{"--fault " + spec + ": " + err.Error(), hintOf(err, "")}
				}
				o.Faults = append(o.Faults, f)
			}
			o.MaxMedia, o.MaxStreams, o.MaxAccountStreams = maxMedia.value, maxStreams.value, maxAccountStreams.value
			o.TLS = tls.value
			o.Engine = engine.config()
			o.Logger = slog.New(slog.NewTextHandler(a.Stderr, nil))
			return a.serve(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Addr, "listen", "127.0.0.1:8580", "`HOST:PORT` to listen on; port 0 picks one")
	flags.Var(&tls, "tls", "`MODE`: self-signed, off, or CERT,KEY: two PEM files, read again when they change")
	flags.StringArrayVar(&o.APIKeys, "api-key", nil, "`KEY` that clients must show, repeatable (HUBBUB_API_KEY)")
	flags.StringVar(&o.DataDir, "data", "", "`DIR` to keep sessions in (default: in memory only)")
	flags.StringVar(&o.NATS, "nats", "", "`URL` of a NATS cluster with JetStream that keeps sessions for several nodes, instead of this one alone")
	flags.StringVar(&o.PublicURL, "public-url", "", "`URL` under which clients reach this server, when it is another one")
	flags.Var(&maxStreams, "max-streams", fmt.Sprintf("`N` streams at once on this node (default %d: what its cores carry)", localserver.DefaultMaxStreams()))
	flags.Var(&maxAccountStreams, "max-account-streams", "`N` streams of one account at once, over all nodes (default: as --max-streams)")
	flags.Var(&maxMedia, "max-media", "`SIZE` of the largest media object")
	flags.BoolVar(&o.KeepAudio, "keep-audio", false, "keep the audio of streams, as media://live/ID/audio.wav")
	flags.IntVar(&o.RatePerMinute, "rate", localserver.DefaultRatePerMinute, "`N` requests a minute for each account and operation, over all nodes; -1 for no limit")
	flags.StringArrayVar(&faults, "fault", nil, "misbehave on purpose: `FAULT` from the list above, repeatable")
	engine.add(flags)
	_ = cmd.MarkFlagDirname("data")
	completeChoices(cmd, "tls", []string{string(localserver.SelfSigned), string(localserver.TLSOff)})
	return cmd
}

// tlsFlag is where the certificate comes from.
type tlsFlag struct{ value localserver.TLSConfig }

func (f *tlsFlag) String() string { return f.value.String() }
func (f *tlsFlag) Type() string   { return "mode" }
func (f *tlsFlag) Set(s string) (err error) {
	f.value, err = localserver.ParseTLS(s)
	return err
}

// serve runs until it is interrupted, which for a server is the normal end.
func (a *App) serve(ctx context.Context, o localserver.Options) error {
	server, err := localserver.Start(context.WithoutCancel(ctx), o)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.Stdout, "ready %s\n", server.URL()); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Wait() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		return err
	}
	a.interrupted.Store(false)
	return nil
}
