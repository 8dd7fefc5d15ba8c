package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"hubbub/capture"
	"hubbub/cmd/hubbub/internal/load"
	"hubbub/cmd/hubbub/internal/usage"
	"hubbub/protocol/hint"
)

const (
	// maxLoadStreams is what one process can open without running out of sockets
	// under common limits.
	maxLoadStreams = 10000
	// unconfirmedStreams is how many streams to another machine need no --yes-remote.
	unconfirmedStreams = 8
)

// loadFlags are the flags of `hubbub load`.
type loadFlags struct {
	serviceFlags
	engineFlags
	input     string
	streams   count
	yesRemote bool
	format    choice
}

func newLoad(a *App) *cobra.Command {
	f := &loadFlags{streams: newCount(1, maxLoadStreams)}
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Load-test a server with concurrent streams in real time",
		Long: `Send a file as N concurrent streams, each paced in real time like a microphone,
and measure the lag of the events behind the audio. Without --server the built-in
server is tested.`,
		Example: `  hubbub load --streams 20 --input meeting.wav
  hubbub load --streams 8 --input meeting.wav --server https://diarization.example --output json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(cmd); err != nil {
				return err
			}
			if f.server != "" {
				a.noEffect(cmd, "on a remote service", "latency", "max-speakers")
			}
			return a.load(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.VarP(&f.streams, "streams", "n", "`N` concurrent streams, started within a second")
	flags.StringVarP(&f.input, "input", "i", "", "audio `FILE` that every stream sends: WAV, FLAC or MP3, - for standard input, or demo for the built-in conversation")
	f.serviceFlags.add(cmd)
	flags.BoolVar(&f.yesRemote, "yes-remote", false, fmt.Sprintf("allow more than %d streams to another machine", unconfirmedStreams))
	f.engineFlags.add(flags)
	addOutput(cmd, &f.format)
	_ = cmd.MarkFlagFilename("input", "wav", "flac", "mp3")
	return cmd
}

// complete rejects inputs that cannot be sent and loads that are an attack.
func (f *loadFlags) complete(cmd *cobra.Command) error {
	switch {
	case f.input == "":
		return usage.Error("hubbub load needs an input", "Give a file with --input FILE.")
	case capture.IsDevice(f.input):
		return usage.Error("a microphone cannot be sent as several streams", "Give a file with --input FILE.")
	}
	if err := f.completeFromSettings(cmd); err != nil {
		return err
	}
	if f.server != "" && f.tooMany(f.server) {
		return usage.Error(
			fmt.Sprintf("%d streams at once are an attack on a service that does not expect them", f.streams.value),
			fmt.Sprintf("If the service's operator agrees, add --yes-remote; up to %d streams, or a server on this machine, need none.", unconfirmedStreams),
		)
	}
	return nil
}

// tooMany reports whether the load must not go to an address: it is many streams
// to another machine without --yes-remote.
func (f *loadFlags) tooMany(address string) bool {
	u, err := url.Parse(address) // an invalid one fails later
	return err == nil && !f.yesRemote && f.streams.value > unconfirmedStreams && !isLoopback(u)
}

func (a *App) load(ctx context.Context, f *loadFlags) error {
	samples, err := capture.Decode(ctx, capture.Spec{Input: f.input, Stdin: a.Stdin})
	if err == nil && len(samples) == 0 {
		err = hint.Add(errors.New("the input contains no audio"), "Give a file with some seconds of speech.")
	}
	if err != nil {
		return err
	}
	server, err := a.connect(ctx, f.serviceFlags, connectOptions{engine: f.engineFlags.config(), maxStreams: f.streams.value})
	if err != nil {
		return err
	}
	defer server.close()

	report := load.Run(ctx, load.Options{Client: server.Client, Samples: samples, Streams: f.streams.value, Reject: f.tooMany, Progress: func(r load.Report) {
		a.progress(fmt.Sprintf("%d open, %d completed, %d failed, %d events, p99 lag %.0f ms, %d chunks dropped",
			r.Open, r.Completed, r.Failed, r.Events, r.Lag.P99, r.DroppedChunks))
	}})
	if err := a.printReport(f.format, report.Text, report.JSON); err != nil {
		return err
	}
	if report.Cause == nil {
		return nil
	}
	return hint.Add(fmt.Errorf("%d of %d streams failed, the first one: %w", report.Failed, report.Streams, report.Cause),
		cmp.Or(hint.Of(report.Cause), "Try fewer streams, or see the server's log."))
}
